// Which sets of features have a part of M that is not positive definite? (theory: minor, single)
//
// A set begins with a prefix of q features; its last three are scanned. An item is one prefix, a
// segment a range of prefixes of one task, numbered as `prefix_of` numbers them. The items of a
// batch have at most `most` features after their prefix, in `width` places, right-aligned: the last
// feature of a task has the place width - 1. Blocks and tiles of columns are counted from the right,
// so that hardly any is only partly used.
//
//   begin      eliminates a prefix in double precision: `rows` of its factor, `unit` lengths
//   correlate  what is left of M, scaled to a unit diagonal, in single precision: upper triangle
//   scan       lists first features with pairs behind them that single precision does not prove
//   judge      keeps those for which double precision does not prove it either
//
// A prefix that is not positive definite itself is kept with -1 in place of a first feature.
//
// WARPS, FIRSTS, SUBTILES, BLOCKS, MOST_COLUMNS, MOST_PREFIX, FLAT and MARGIN come from the program
// that compiles this.

#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

#define THREADS (32 * WARPS)
#define NOTHING __int_as_float(0x7fc00000)  // NaN: a maximum passes over it, no comparison holds
#define ROUNDING 2e-15                      // of one test in double precision

struct Segment {
    long long matrix;  // where M begins
    long long rank;    // of its first prefix
    long long item;    // its first item
    long long features;
    long long prefix;
};

struct Head {
    int segment;
    int count;  // features after the prefix; none if the prefix itself is not positive definite
};

// A first feature, and places that are in every pair behind it which is not proven. If these are
// more than there is room for, any pair may be one.
struct Suspect {
    int item;
    int first;
    int count;
    int column[MOST_COLUMNS];
};

// C(n, r) for r <= MOST_PREFIX, as rows of numbers that are exact where they matter.
__device__ double choices_of(const double* choices, int n, int r) {
    return choices[n * (MOST_PREFIX + 1) + r];
}

// The prefix with a rank: its last feature t is the largest one with C(t, q) <= rank, and so on.
// One warp: its lanes look at 32 candidates at a time.
__device__ void unrank(const double* choices, double rank, int features, int q, int* prefix) {
    const int lane = threadIdx.x & 31;
    for (int i = q; i > 0; --i) {
        int low = 0;  // the last candidate known to be possible
        for (int stride = 32; stride > 0; stride /= 32) {
            const int candidate = low + lane * stride;
            const bool fits = candidate < features && choices_of(choices, candidate, i) <= rank;
            low += stride * (__popc(__ballot_sync(0xffffffff, fits)) - 1);
        }
        rank -= choices_of(choices, low, i);
        if (lane == 0) prefix[i - 1] = low;
    }
}

__device__ int segment_of(const Segment* segments, int n_segments, int item) {
    int low = 0, high = n_segments;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (segments[middle].item <= item) low = middle; else high = middle;
    }
    return low;
}

__device__ void keep(int batch, int item, int feature, int* kept, int most_kept, int* n_kept) {
    const int at = atomicAdd(n_kept, 1);
    if (at < most_kept) {
        kept[3 * at] = batch;
        kept[3 * at + 1] = item;
        kept[3 * at + 2] = feature;
    }
}

extern "C" __global__ void begin(const Segment* segments, int n_segments, const double* choices,
                                 const double* matrices, int width, int most_prefix, double* rows,
                                 double* unit, Head* heads, int batch, int* kept, int most_kept,
                                 int* n_kept) {
    __shared__ int prefix[MOST_PREFIX + 1];
    __shared__ double factor[MOST_PREFIX + 1][MOST_PREFIX + 1];
    const int item = blockIdx.x;
    const int number = segment_of(segments, n_segments, item);
    const Segment here = segments[number];
    const int m = (int)here.features, q = (int)here.prefix;
    if (threadIdx.x < 32)
        unrank(choices, (double)(here.rank + item - here.item), m, q, prefix);
    __syncthreads();
    const double* M = matrices + here.matrix;
    rows += (size_t)item * most_prefix * width;
    unit += (size_t)item * width;
    const int first = q > 0 ? prefix[q - 1] + 1 : 0, count = m - first, pad = width - count;
    bool definite = true;
    for (int i = 0; i < q && definite; ++i) {
        const double* row = M + (size_t)prefix[i] * m;
        double pivot = row[prefix[i]];
        for (int l = 0; l < i; ++l) pivot -= factor[l][i] * factor[l][i];
        definite = pivot > 0.0;
        const double scale = definite ? 1.0 / sqrt(pivot) : 0.0;
        const int later = q - 1 - i;  // features of the prefix, before those after it
        for (int c = threadIdx.x; c < later + count; c += blockDim.x) {
            const int j = c < later ? prefix[i + 1 + c] : first + c - later;
            double x = row[j];
            for (int l = 0; l < i; ++l)
                x -= factor[l][i] * (c < later ? factor[l][i + 1 + c] : rows[l * width + pad + c - later]);
            if (c < later) factor[i][i + 1 + c] = x * scale; else rows[i * width + pad + c - later] = x * scale;
        }
        __syncthreads();
    }
    for (int u = threadIdx.x; u < width; u += blockDim.x) {
        double variance = -1.0;
        if (u >= pad && definite) {
            const size_t j = first + u - pad;
            variance = M[j * m + j];
            for (int l = 0; l < q; ++l) variance -= rows[l * width + u] * rows[l * width + u];
        }
        unit[u] = variance > 0.0 ? 1.0 / sqrt(variance) : (double)NOTHING;
    }
    if (threadIdx.x == 0) {
        heads[item].segment = number;
        heads[item].count = definite ? count : 0;
        if (!definite) keep(batch, item, -1, kept, most_kept, n_kept);
    }
}

// Entries of M after the elimination of a prefix; u < v are places of features after it.
__device__ double left_of(const double* M, int m, int pad, int first, const double* rows, int width,
                          int q, int u, int v) {
    double x = M[(size_t)(first + u - pad) * m + first + v - pad];
    for (int l = 0; l < q; ++l) x -= rows[l * width + u] * rows[l * width + v];
    return x;
}

extern "C" __global__ void correlate(const Segment* segments, const Head* heads,
                                     const double* matrices, int width, int most, int most_prefix,
                                     const double* rows, const double* unit, float* C) {
    const int blocks = (most + 7) / 8, item = blockIdx.x / blocks;
    const Head head = heads[item];
    const int pad = width - head.count, top = width - 8 * (blockIdx.x % blocks + 1);
    if (top + 8 <= pad) return;
    const Segment here = segments[head.segment];
    const int m = (int)here.features, q = (int)here.prefix;
    const double* M = matrices + here.matrix;
    rows += (size_t)item * most_prefix * width;
    unit += (size_t)item * width;
    C += (size_t)item * width * width;
    for (int v = top / 32 * 32 + threadIdx.x; v < width; v += blockDim.x) {
        double x[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int u = top + i;
            x[i] = u >= pad && v > u ? M[(size_t)(m + u - width) * m + m + v - width] : 0.0;
        }
        for (int l = 0; l < q; ++l) {
            const double right = rows[l * width + v];
#pragma unroll
            for (int i = 0; i < 8; ++i) x[i] -= rows[l * width + top + i] * right;
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int u = top + i;
            if (u >= pad) C[(size_t)u * width + v] = v > u ? (float)(x[i] * (unit[u] * unit[v])) : NOTHING;
        }
    }
}

// Tests of pairs (a, b), b in the subtiles from J on, for the firsts of a warp.
struct Tests {
    float minus[FIRSTS][SUBTILES];  // correlations of first and b, with the other sign
    float most[FIRSTS][SUBTILES];   // largest left side of (single) so far
    int column[SUBTILES];

    template <int J>
    __device__ __forceinline__ void rows(int a, int end, int step, const float* C, int width,
                                         const float4* terms, int stride) {
#pragma unroll 2
        for (; a < end; a += step) {
            float x[SUBTILES];
#pragma unroll
            for (int j = J; j < SUBTILES; ++j) x[j] = __ldg(C + (size_t)a * width + column[j]);
#pragma unroll
            for (int s = 0; s < FIRSTS; s += 2) {
                const float4 two = terms[a * stride + s / 2];  // (inverse, slope) of two firsts
#pragma unroll
                for (int j = J; j < SUBTILES; ++j) {
                    most[s][j] = fmaxf(most[s][j], fabsf(fmaf(x[j], two.x, two.y * minus[s][j])));
                    most[s + 1][j] =
                        fmaxf(most[s + 1][j], fabsf(fmaf(x[j], two.z, two.w * minus[s + 1][j])));
                }
            }
        }
    }

    // Rows from `a` on, every `step`-th: those before a subtile ends have pairs in it.
    template <int J = 0>
    __device__ __forceinline__ void tile(int a, int left, int step, const float* C, int width,
                                         const float4* terms, int stride) {
        const int end = left + 32 * (J + 1);
        rows<J>(a, end, step, C, width, terms, stride);
        if constexpr (J + 1 < SUBTILES) {
            if (a < end) a += (end - a + step - 1) / step * step;
            tile<J + 1>(a, left, step, C, width, terms, stride);
        }
    }
};

// A block has `groups` groups of FIRSTS first features; the warps of a group share its rows.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    scan(const Head* heads, int width, int most, int groups, const float* C, Suspect* listed,
         int* n_listed) {
    DYNAMIC_SHARED(float4, terms);  // [place][first]: (inverse, slope)
    __shared__ int n_columns[FIRSTS * WARPS];
    __shared__ int columns[FIRSTS * WARPS][MOST_COLUMNS];
    const int span = FIRSTS * groups, blocks = (most + span - 1) / span;
    const int item = blockIdx.x / blocks, s0 = width - span * (blockIdx.x % blocks + 1);
    const int pad = width - heads[item].count;
    if (s0 + span <= pad) return;
    C += (size_t)item * width * width;
    if (threadIdx.x < span) n_columns[threadIdx.x] = 0;
    __syncthreads();
    const auto suspect = [&](int first, int place) {
        const int at = atomicAdd(&n_columns[first], 1);
        if (at < MOST_COLUMNS) columns[first][at] = place;
    };
    const int start = max(s0 + 1, 0);
    for (int i = start * span + threadIdx.x; i < width * span; i += THREADS) {
        const int a = i / span, s = s0 + i % span;
        const bool is_pair = s >= pad && a > s;
        const float x = is_pair ? C[(size_t)s * width + a] : 0.f;
        const float variance = fmaf(-x, x, 1.f), inverse = 1.f / sqrtf(variance);
        const bool plain = variance > FLAT;
        if (is_pair && !plain) suspect(s - s0, a);
        float2 pair;
        pair.x = is_pair && plain ? inverse : 0.f;
        pair.y = is_pair && plain ? x * inverse : 0.f;
        ((float2*)terms)[i] = pair;
    }
    __syncthreads();
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int group = warp % groups, step = WARPS / groups, first = s0 + FIRSTS * group;
    const float4* own = terms + FIRSTS * group / 2;
    for (int right = width; right > first + 1 && first + FIRSTS > pad; right -= 32 * SUBTILES) {
        const int left = right - 32 * SUBTILES;
        Tests tests;
#pragma unroll
        for (int j = 0; j < SUBTILES; ++j) {
            const int b = left + 32 * j + lane;
            tests.column[j] = max(left + 32 * j, 0) + lane;  // what is read in vain meets NaN
#pragma unroll
            for (int s = 0; s < FIRSTS; ++s) {
                const bool is_pair = first + s >= pad && b > first + s;
                tests.minus[s][j] = is_pair ? -C[(size_t)(first + s) * width + b] : NOTHING;
                tests.most[s][j] = 0.f;
            }
        }
        tests.tile(max(first + 1, 0) + warp / groups, left, step, C, width, own, span / 2);
#pragma unroll
        for (int s = 0; s < FIRSTS; ++s)
#pragma unroll
            for (int j = 0; j < SUBTILES; ++j) {
                const float variance = fmaf(-tests.minus[s][j], tests.minus[s][j], 1.f);
                const float reached = tests.most[s][j] + MARGIN;
                if (variance > FLAT && reached * reached >= variance)
                    suspect(FIRSTS * group + s, left + 32 * j + lane);
            }
    }
    __syncthreads();
    if (threadIdx.x < span && n_columns[threadIdx.x] && s0 + (int)threadIdx.x + 3 <= width) {
        Suspect& here = listed[atomicAdd(n_listed, 1)];
        here.item = item;
        here.first = s0 + threadIdx.x;
        here.count = n_columns[threadIdx.x];
        for (int i = 0; i < min(here.count, MOST_COLUMNS); ++i)
            here.column[i] = columns[threadIdx.x][i];
    }
}

extern "C" __global__ void judge(const Segment* segments, const Head* heads, const double* matrices,
                                 int width, int most_prefix, const double* all_rows,
                                 const Suspect* listed, const int* n_listed, int batch, int* kept,
                                 int most_kept, int* n_kept) {
    DYNAMIC_SHARED(double, memory);
    double *own = memory, *variance = memory + width;  // row of the factor for s; what is left
    for (int entry = blockIdx.x; entry < *n_listed; entry += gridDim.x) {
        const Suspect& suspect = listed[entry];
        const int item = suspect.item, s = suspect.first;
        const Head head = heads[item];
        const Segment here = segments[head.segment];
        const int m = (int)here.features, q = (int)here.prefix;
        const int pad = width - head.count, first = m - head.count;
        const double* M = matrices + here.matrix;
        const double* rows = all_rows + (size_t)item * most_prefix * width;
        const double pivot = left_of(M, m, pad, first, rows, width, q, s, s);
        bool found = !(pivot > 0.0);
        __syncthreads();  // nobody reads what was there for the entry before
        if (!found)
            for (int u = s + 1 + threadIdx.x; u < width; u += blockDim.x) {
                own[u] = left_of(M, m, pad, first, rows, width, q, s, u) / sqrt(pivot);
                variance[u] = left_of(M, m, pad, first, rows, width, q, u, u) - own[u] * own[u];
                if (!(variance[u] > 0.0)) found = true;
            }
        const auto is_harmful = [&](int a, int b) {
            const double g = left_of(M, m, pad, first, rows, width, q, a, b) - own[a] * own[b];
            return !(g * g < variance[a] * variance[b] * (1.0 - ROUNDING));
        };
        if (__syncthreads_or(found)) {
            found = true;
        } else if (suspect.count <= MOST_COLUMNS) {
            for (int i = 0; i < suspect.count; ++i)
                for (int a = s + 1 + threadIdx.x; a < width && !found; a += blockDim.x) {
                    const int b = suspect.column[i];
                    found = a != b && is_harmful(min(a, b), max(a, b));
                }
        } else {
            for (int a = s + 1 + threadIdx.x / 32; a < width && !found; a += blockDim.x / 32)
                for (int b = a + 1 + threadIdx.x % 32; b < width && !found; b += 32)
                    found = is_harmful(a, b);
        }
        if (__syncthreads_or(found) && threadIdx.x == 0)
            keep(batch, item, first + s - pad, kept, most_kept, n_kept);
    }
}
