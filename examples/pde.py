"""
The equation of a wave
======================

A film of a water channel: the height u of the surface, at many places x and times t. Two humps run
to the right, the taller one overtakes the other, and both come out as if nothing had happened.
Which partial differential equation does that? The candidates are products of powers of u with its
derivatives in space, and the task is the same as ever: the best few terms, with a proof.
"""

# %%
# The film
# --------
# We make it ourselves, with the equation of Korteweg and de Vries, ``u_t = -6 u u_x - u_xxx``, and
# add 2% of noise. The linear part is solved exactly in Fourier space, the rest by SciPy.
import matplotlib.pyplot as plt
import numpy as np
import pysindy as ps
from scipy.integrate import solve_ivp

import bestk
from bestk.sindy import OKRidge

LENGTH, DURATION = 40.0, 4.0
x = np.linspace(0.0, LENGTH, 512, endpoint=False)
t = np.linspace(0.0, DURATION, 300)
wave_number = 2 * np.pi * np.fft.rfftfreq(len(x), LENGTH / len(x))


def film(first, square, third):
    """u (x, t) of ``u_t = square (u^2)_x + third u_xxx`` from the state `first`."""
    linear = third * (1j * wave_number) ** 3
    kept = wave_number < 2 / 3 * wave_number.max()  # squares of the others would fold back

    def right_hand_side(time, modes):
        u = np.fft.irfft(modes * np.exp(linear * time), len(x))
        change = square * 1j * wave_number * np.fft.rfft(u**2) * kept
        return change * np.exp(-linear * time)

    start = np.fft.rfft(first).astype(complex)
    options = {"t_eval": t, "method": "DOP853", "rtol": 1e-7, "atol": 1e-7}
    modes = solve_ivp(right_hand_side, (0.0, DURATION), start, **options).y
    return np.fft.irfft(modes * np.exp(np.outer(linear, t)), len(x), axis=0)


def hump(speed, place):
    return speed / 2 / np.cosh(np.sqrt(speed) / 2 * (x - place)) ** 2


clean = film(hump(5.0, 8.0) + hump(2.0, 16.0), square=-3.0, third=-1.0)
u = clean + 0.02 * clean.std() * np.random.default_rng(0).standard_normal(clean.shape)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
image = left.pcolormesh(x, t, u.T, cmap="viridis", rasterized=True)
left.set(xlabel="x", ylabel="t")
figure.colorbar(image, ax=left, label="u")
for i, colour in zip((0, 150, 299), bestk.plots.COLOURS, strict=False):
    right.plot(x, u[:, i], color=colour, linewidth=1, label=f"t = {t[i]:.1f}")
right.set(xlabel="x", ylabel="u")
right.spines[["top", "right"]].set_visible(False)
right.legend(frameon=False)
plt.show()

# %%
# First try: differentiate
# ------------------------
# PySINDy's ``PDELibrary`` takes derivatives at each point of the film. Powers of u up to the third,
# derivatives up to the fourth, and their products are 19 candidates.
powers = ps.PolynomialLibrary(degree=3, include_bias=False)
local = ps.PDELibrary(powers, derivative_order=4, spatial_grid=x, include_bias=False)
model = ps.SINDy(optimizer=OKRidge(k=2, gap_tol=0), feature_library=local)
model.fit(u[..., None], t=t, feature_names=["u"])
model.print(lhs=["u_t"])
(result,) = model.optimizer.results_
print(f"{result.status}, gap {result.gap:g}, R² {result.r2:.3f}")

# %%
# Proven, and wrong. R² gives it away. The third derivative of 2% noise is far larger than that of
# the wave, so the true term is drowned, and the best two of these columns are not those of the
# equation. A proof is about the columns one has.
#
# Better columns: the weak form
# -----------------------------
# Derivatives need not be taken of u. Multiply the equation by a smooth bump, integrate over a
# patch of the film, and move the derivatives over to the bump, which is known exactly. Each of 400
# patches gives one row.
np.random.seed(0)  # noqa: NPY002 - PySINDy draws the patches from the global generator
grid = np.stack(np.meshgrid(x, t, indexing="ij"), axis=-1)
weak = ps.WeakPDELibrary(
    powers,
    derivative_order=4,
    spatiotemporal_grid=grid,
    include_bias=False,
    K=400,
    H_xt=[4.0, 0.4],
    p=6,
)
names = weak.fit(u[..., None]).get_feature_names(["u"])
optimizer = OKRidge(k=2, gap_tol=0, feature_names=names)
model = ps.SINDy(optimizer=optimizer, feature_library=weak)
model.fit(u[..., None], t=t, feature_names=["u"])
model.print(lhs=["u_t"])
(result,) = optimizer.results_
print(f"{result.status}, gap {result.gap:g}, R² {result.r2:.6f}")

# %%
# There it is. PySINDy counts derivatives: ``u_111`` is the third, and ``uu_1`` is u times the
# first.
#
# Two terms? And these two?
# -------------------------
# The optimizer keeps the problem that it solved, so that one can ask more of it: the best equations
# of all sizes, and the runner-up of the one with two terms.
(problem,) = optimizer.problems_
path = problem.solve_path(range(1, 7), gap_tol=0)
print(path)
other = problem.runner_up(path[2], gap_tol=0)
print(f"runner-up: {', '.join(other.names)}, {other.objective / result.objective:.0f} times worse")

# %%
# The second term takes away all but a few ten-thousandths of what the first one leaves, and among
# equations with two terms there is no other that comes near. The third takes a fifth of the tiny
# rest. AICc and BIC would have it all the same, for they believe that the rest is noise. It is
# not only that: integrals over a grid are not exact, and a further term can imitate their error.
# The drop after k = 2 is the better guide here.
ax = path.plot()
ax.set(yscale="log", title="What each term explains")
plt.show()

# %%
# And thresholds?
# ---------------
# STLSQ, the usual method, fits all terms and removes those with coefficients below a threshold,
# again and again. On these columns it does well:
target = weak.convert_u_dot_integral(u[..., None])
thresholds = 10.0 ** np.linspace(-3, 0.6, 19)
sizes, right = [], []
for threshold in thresholds:
    thresholded = ps.STLSQ(threshold=threshold, alpha=1e-6)
    thresholded.fit(optimizer.Theta_, target)
    chosen = np.flatnonzero(thresholded.coef_)
    sizes.append(len(chosen))
    right.append(np.array_equal(chosen, result.support))
print(f"{sum(right)} of {len(thresholds)} thresholds give the same equation")

# %%
# A wide range of thresholds leads to the proven equation. STLSQ is simple and quick, and where
# terms are as distinct as here, it is enough. What it cannot say is which part of the range is the
# right one: models of one term and of many look equally finished. The path above can say it, since
# each of its models is the best of its size.
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
ax.semilogx(thresholds, sizes, color=bestk.plots.GREY, linewidth=1, zorder=0)
for flag, colour, label in ((True, 0, "the proven equation"), (False, 1, "another")):
    shown = np.array(right) == flag
    colour = bestk.plots.COLOURS[colour]
    ax.scatter(thresholds[shown], np.array(sizes)[shown], color=colour, label=label)
ax.set(xlabel="threshold of STLSQ", ylabel="terms")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# Does it make the same waves?
# ----------------------------
# The last test is not statistical. Start from the first frame of the clean film and let the
# equation that was found run: ``u u_x`` is half of ``(u^2)_x``.
coef = result.named_coef
replay = film(clean[:, 0], square=coef["uu_1"] / 2, third=coef["u_111"])
error = np.linalg.norm(replay - clean) / np.linalg.norm(clean)
print(f"u_t = {coef['uu_1']:.3f} u u_x {coef['u_111']:+.3f} u_xxx; difference {error:.1%}")

figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
ax.plot(x, u[:, -1], color=bestk.plots.GREY, linewidth=0.8, label="last frame, with noise")
ax.plot(x, replay[:, -1], color=bestk.plots.COLOURS[0], label="the equation that was found")
ax.set(xlabel="x", ylabel="u")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
