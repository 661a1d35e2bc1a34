// CUDA C as plain C++: the threads of a block are fibers that take turns, so that kernels can be
// tested where there is no device. It sees wrong indices and threads that wait for each other in
// vain, but neither races nor speed.

#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

using std::max;
using std::min;

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __restrict__
#define __launch_bounds__(...)
#define DYNAMIC_SHARED(type, name) type* name = reinterpret_cast<type*>(emulator::shared.data())

struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
struct Index { int x, y, z; };

static Index threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

enum Waiting { NO, FOR_WARP, FOR_BLOCK, DONE };

struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(1 << 16);
    Waiting waiting = NO;
    unsigned value = 0, answer = 0;  // given to those one waits for, and got from them
};

static std::vector<char> shared;
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static int current;
static std::function<void()> body;

static unsigned wait(Waiting kind, unsigned value) {
    Fiber& me = fibers[current];
    me.waiting = kind, me.value = value;
    swapcontext(&me.context, &scheduler);
    return me.answer;
}

static void start() {
    body();
    fibers[current].waiting = DONE;
}

// Answer all fibers from `first` on if those that are not done wait for each other.
static bool resolve(Waiting kind, int first, int count) {
    unsigned answer = 0;
    bool any = false;
    for (int i = first; i < first + count; ++i) {
        if (fibers[i].waiting == DONE) continue;
        if (fibers[i].waiting != kind) return false;
        any = true;
        if (kind == FOR_WARP) answer |= (fibers[i].value != 0) << (i - first);
        else answer |= fibers[i].value != 0;
    }
    for (int i = first; i < first + count; ++i)
        if (fibers[i].waiting == kind) fibers[i].waiting = NO, fibers[i].answer = answer;
    return any;
}

static void run_block() {
    const int n = blockDim.x;
    for (int i = 0; i < n; ++i) {
        Fiber& fiber = fibers[i];
        fiber.waiting = NO;
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = &scheduler;
        makecontext(&fiber.context, start, 0);
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (current = 0; current < n; ++current)
            if (fibers[current].waiting == NO) {
                threadIdx.x = current;
                swapcontext(&scheduler, &fibers[current].context);
                moved = true;
            }
        for (int first = 0; first < n; first += 32) moved |= resolve(FOR_WARP, first, min(32, n - first));
        moved |= resolve(FOR_BLOCK, 0, n);
    }
    for (const Fiber& fiber : fibers)
        if (fiber.waiting != DONE) {
            std::fprintf(stderr, "threads of a block wait for each other in vain\n");
            std::abort();
        }
}

static void launch(int blocks, int threads, int n_shared, std::function<void()> kernel) {
    body = kernel;
    blockDim = {threads, 1, 1}, gridDim = {blocks, 1, 1};
    fibers.clear();
    fibers.resize(threads);
    for (int b = 0; b < blocks; ++b) {
        shared.assign(n_shared, static_cast<char>(0xff));  // NaN: nothing is zero by chance
        blockIdx = {b, 0, 0};
        run_block();
    }
}

}  // namespace emulator

static void __syncthreads() { emulator::wait(emulator::FOR_BLOCK, 0); }
static int __syncthreads_or(int value) { return emulator::wait(emulator::FOR_BLOCK, value != 0); }
static unsigned __ballot_sync(unsigned, int value) { return emulator::wait(emulator::FOR_WARP, value != 0); }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static float __int_as_float(int x) { float y; std::memcpy(&y, &x, sizeof y); return y; }
template <class T> static T __ldg(const T* x) { return *x; }
static int atomicAdd(int* x, int more) { const int before = *x; *x += more; return before; }
