"""Sums inside compiled loops whose rounding is written down, not left to the compiler.

A compiler that may reorder sums and fuse products does so differently wherever a function is
inlined, so that the last digits (and with them the tree) would depend on what was compiled before,
and on which machine. Here the order is fixed: lanes for SIMD, and products fused on demand.
"""

from typing import Any

from llvmlite import ir
from numba import extending, types, uintp
from numba.core import cgutils

from bestk.base.compiling import kernel

intrinsic: Any = extending.intrinsic  # typed as if kernels passed the context, too

LANES = 16
"""Two registers of the widest machines. A short row ends with FEW at a time, then one by one."""

FEW = 4


@intrinsic
def _fma(typing, a, b, c):
    def emit(context, builder, signature, values):
        return builder.fma(*values)

    return a(a, a, a), emit


@kernel
def fma(a, b, c):
    """a * b + c, rounded once."""
    return _fma(a, b, c)


@intrinsic
def _dot(typing, x, i, y, j, size):
    """One intrinsic with all branches: with one each, arrays would be counted at every call."""
    if not all(isinstance(z, types.Array) and z.layout == "C" for z in (x, y)):
        return None

    def emit(context, builder, signature, values):
        x, i, y, j, left = values
        total = cgutils.alloca_once_value(builder, ir.Constant(ir.DoubleType(), 0.0))
        starts = [
            builder.gep(context.make_array(kind)(context, builder, z).data, [offset])
            for kind, z, offset in zip(signature.args[0:3:2], (x, y), (i, j), strict=True)
        ]
        for width in (LANES, FEW, 1):
            many = ir.Constant(left.type, width)
            steps, left = builder.udiv(left, many), builder.urem(left, many)
            with builder.if_then(builder.icmp_unsigned(">", steps, ir.Constant(left.type, 0))):
                part = _sum(builder, _products(builder, starts, steps, width), width)
                builder.store(builder.fadd(builder.load(total), part), total)
            done = builder.mul(steps, many)
            starts = [builder.gep(start, [done]) for start in starts]
        return builder.load(total)

    return types.float64(x, types.uintp, y, types.uintp, types.uintp), emit


def _products(builder, starts, steps, width):
    """Sums of products: lane l has the sum over steps s of x[width * s + l] * y[width * s + l]."""
    kind, size = ir.VectorType(ir.DoubleType(), width), ir.Constant(steps.type, width)
    fused = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind] * 3), f"llvm.fma.v{width}f64"
    )
    sums = cgutils.alloca_once_value(builder, ir.Constant(kind, [0.0] * width))
    with cgutils.for_range(builder, steps, intp=steps.type) as loop:
        at = builder.mul(loop.index, size)
        factors = [_load(builder, builder.gep(start, [at]), kind) for start in starts]
        builder.store(builder.call(fused, [*factors, builder.load(sums)]), sums)
    return builder.load(sums)


def _load(builder, pointer, kind):
    loaded = builder.load(builder.bitcast(pointer, kind.as_pointer()))
    loaded.align = 8
    return loaded


def _sum(builder, lanes, width):
    """Of all lanes: the upper half is added to the lower one until one is left."""
    while width > 1:
        width //= 2
        halves = [
            builder.shuffle_vector(
                lanes,
                ir.Constant(lanes.type, ir.Undefined),
                ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(a, a + width))),
            )
            for a in (0, width)
        ]
        lanes = builder.fadd(*halves)
    return builder.extract_element(lanes, ir.Constant(ir.IntType(32), 0))


@kernel
def dot(x, y):
    return _dot(x, uintp(0), y, uintp(0), uintp(len(x)))


@kernel
def dot_parts(x, i, y, j, size):
    """x[i : i + size] @ y[j : j + size]"""
    return _dot(x, uintp(i), y, uintp(j), uintp(size))


@kernel
def dot_rows(X, i, Y, j, start, stop):
    """X[i, start:stop] @ Y[j, start:stop], where start <= stop."""
    x, y = i * X.shape[1] + start, j * Y.shape[1] + start
    return _dot(X, uintp(x), Y, uintp(y), uintp(stop - start))


@kernel
def times(A, x, out):
    """out = A @ x"""
    for i in range(len(x)):
        out[i] = dot(A[i], x)


@kernel
def add(x, a, y):
    """x += a * y"""
    for j in range(len(x)):
        x[j] = fma(a, y[j], x[j])


# The loops index with unsigned integers: no test for negative indices stands in the way of SIMD,
# and no slices are made, whose reference counts would cost more than a short row.
@kernel
def add_row(out, a, X, i, size):
    """out[:size] += a * X[i, :size]"""
    i, size = uintp(i), uintp(size)
    for j in range(size):
        out[j] = fma(a, X[i, j], out[j])
