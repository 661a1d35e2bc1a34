"""Products of vectors inside compiled loops."""

from bestk.base.compiling import fast_kernel, kernel


@fast_kernel
def dot(x, y):
    total = 0.0
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@fast_kernel
def add(x, a, y):
    """x += a * y"""
    for j in range(len(x)):
        x[j] += a * y[j]


@kernel
def times(A, x, out):
    """out = A @ x"""
    for i in range(len(x)):
        out[i] = dot(A[i], x)
