// Beginnings of sets of r features behind which the last two may gain more than is needed
// (theory: pair-gain, single; the margins are those of numerics/scan.py, in double precision).
//
// A beginning is a prefix of r - 3 features and one more, t. A block has one prefix and FIRSTS
// features t. H is symmetric: products of m features given others, d theirs with y.

#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

#define UNIT 1.1102230246251565e-16
#define USELESS 1e-3

struct Terms {
    double w, beta, gamma, kappa;
};

// Of a feature given a beginning; kappa is infinite where no pair with it can be judged.
__device__ Terms terms_of(double w, double variance, double moment, double needed) {
    Terms terms = {w, 0.0, 0.0, 1.0 / 0.0};
    const double rest = needed - moment * moment / variance;
    if (!(variance > 0.0) || !(rest > 0.0)) return terms;
    const double kappa = 1.0 / rest;
    const double margin = UNIT * (32.0 + 32.0 * sqrt(kappa) + 16.0 * kappa);
    if (!(margin <= USELESS)) return terms;
    terms.beta = moment / variance;
    terms.gamma = (1.0 + margin) / variance;
    terms.kappa = (1.0 + margin) * kappa;
    return terms;
}

extern "C" __global__ void pairs(const double* H, const double* d, int m, int q, double needed,
                                 double least, const double* choices, long long first_rank,
                                 int groups, long long* listed, int most_listed, int* n_listed) {
    DYNAMIC_SHARED(double, memory);
    __shared__ int prefix[MOST_PREFIX + 1];
    __shared__ double left_rank;
    __shared__ int is_open[FIRSTS];
    const int me = threadIdx.x, n = blockDim.x;
    const long long rank = first_rank + blockIdx.x / groups;
    const int group = blockIdx.x % groups;

    // The prefix with this rank, in the order of a dictionary: each thread knows some features.
    int start = 0;
    if (me == 0) left_rank = (double)rank;
    __syncthreads();
    for (int i = 0; i < q; ++i) {
        const int size = q - i;
        const double here = left_rank, all = choices[(m - start) * (MOST_PREFIX + 1) + size];
        __syncthreads();
        for (int t = start + me; t + size <= m; t += n) {
            const double before = all - choices[(m - t) * (MOST_PREFIX + 1) + size];
            const double after = all - choices[(m - t - 1) * (MOST_PREFIX + 1) + size];
            if (before <= here && here < after) {
                prefix[i] = t;
                left_rank = here - before;
            }
        }
        __syncthreads();
        start = prefix[i] + 1;
    }
    const int t0 = start + FIRSTS * group;
    if (t0 + 2 >= m) return;

    // Rows of a Cholesky factor of the prefix, for the features after it.
    double *rows = memory, *own = memory + (size_t)q * m;
    double share[MOST_PREFIX + 1], rest = needed;
    bool is_judged = true;
    for (int i = 0; i < q && is_judged; ++i) {
        const int t = prefix[i];
        double pivot = H[(size_t)t * m + t], moment = d[t];
        for (int l = 0; l < i; ++l) {
            pivot -= rows[l * m + t] * rows[l * m + t];
            moment -= rows[l * m + t] * share[l];
        }
        const double root = sqrt(pivot);
        share[i] = moment / root;
        rest -= share[i] * share[i];
        is_judged = pivot > 0.0 && rest > least;
        for (int j = t + 1 + me; j < m && is_judged; j += n) {
            double x = H[(size_t)t * m + j];
            for (int l = 0; l < i; ++l) x -= rows[l * m + t] * rows[l * m + j];
            rows[i * m + j] = x / root;
        }
        __syncthreads();
    }
    if (!is_judged) {
        if (group == 0 && me == 0) {
            const int at = atomicAdd(n_listed, 1);
            if (at < most_listed) {
                listed[2 * at] = rank;
                listed[2 * at + 1] = -1;
            }
        }
        return;
    }

    // For each first feature t its row of the factor, and what is left of the others: three arrays.
    double needs[FIRSTS];
    for (int f = 0; f < FIRSTS; ++f) {
        const int t = t0 + f;
        double *w = own + (size_t)3 * f * m, *variance = w + m, *moment = variance + m;
        double pivot = -1.0, product = 0.0;
        if (t + 2 < m) {
            pivot = H[(size_t)t * m + t];
            product = d[t];
            for (int l = 0; l < q; ++l) {
                pivot -= rows[l * m + t] * rows[l * m + t];
                product -= rows[l * m + t] * share[l];
            }
        }
        const double root = sqrt(pivot), gained = product / root;
        needs[f] = rest - gained * gained;
        const bool fits = pivot > 0.0 && needs[f] > least;
        if (me == 0) is_open[f] = t + 2 < m && !fits;
        for (int j = t0 + 1 + me; j < m; j += n) {
            double x = 0.0, v = -1.0, y = 0.0;
            if (fits && j > t) {
                x = H[(size_t)t * m + j], v = H[(size_t)j * m + j], y = d[j];
                for (int l = 0; l < q; ++l) {
                    const double row = rows[l * m + j];
                    x -= rows[l * m + t] * row, v -= row * row, y -= row * share[l];
                }
                x /= root, v -= x * x, y -= x * gained;
                if (y * y > v) v = -1.0;  // more about y than there is to say: rounding
            }
            w[j] = x, variance[j] = v, moment[j] = y;
        }
    }
    __syncthreads();

    // A lane has a feature i, and goes through the features j after it.
    bool found[FIRSTS];
    for (int f = 0; f < FIRSTS; ++f) found[f] = false;
    for (int tile = t0 + 1 + 32 * (me / 32); tile < m; tile += n) {
        const int i = tile + me % 32;
        Terms terms[FIRSTS];
#pragma unroll
        for (int f = 0; f < FIRSTS; ++f) {
            const double* w = own + (size_t)3 * f * m;
            const bool counts = i < m && i > t0 + f && t0 + f + 2 < m && !is_open[f];
            terms[f] = terms_of(0.0, 1.0, 0.0, 1.0);
            if (counts) terms[f] = terms_of(w[i], w[m + i], w[2 * m + i], needs[f]);
            // The last feature is in pairs as j alone.
            if (counts && i + 1 < m && terms[f].kappa > 1e300) found[f] = true;
        }
        for (int j = tile + 1; j < m; ++j) {
            if (i >= j) continue;
            double x = H[(size_t)j * m + i];
            for (int l = 0; l < q; ++l) x -= rows[l * m + i] * rows[l * m + j];
#pragma unroll
            for (int f = 0; f < FIRSTS; ++f) {
                const double* w = own + (size_t)3 * f * m;
                const double g = x - terms[f].w * w[j], h = w[2 * m + j] - terms[f].beta * g;
                const double size = terms[f].kappa * h * h + terms[f].gamma * g * g;
                if (i > t0 + f && !(size <= w[m + j])) found[f] = true;
            }
        }
    }
    for (int f = 0; f < FIRSTS; ++f)
        if (found[f] && t0 + f + 2 < m) is_open[f] = 1;
    __syncthreads();
    if (me < FIRSTS && is_open[me]) {
        const int at = atomicAdd(n_listed, 1);
        if (at < most_listed) {
            listed[2 * at] = rank;
            listed[2 * at + 1] = t0 + me;
        }
    }
}
