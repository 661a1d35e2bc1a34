"""
Several recordings, with a force that we control
================================================

A small magnet hangs on a spring. A coil pulls at it, and we choose the current. Its position is
recorded in a few experiments. What are its equations of motion, the effect of the current included?

This page keeps the first attempts, which failed, because each of them fails in a way that can be
*seen*.
"""

# %%
# Four experiments
# ----------------
# We make the data ourselves, to know the answer: ``x' = v`` and
# ``v' = -x - 0.3 v - 0.8 x^3 + 0.5 u - 0.2 x u``. The spring gets stiffer when it is stretched, and
# the pull of the coil depends on where the magnet is: that is the term ``x u``.
import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

import bestk
from bestk.sindy import discover

STEP = 0.02
NAMES = ["x", "v"]


def motion(t, state, current):
    x, v = state
    u = current(t)
    return [v, -x - 0.3 * v - 0.8 * x**3 + 0.5 * u - 0.2 * x * u]


def record(current, start, seed, duration=20.0, noise=0.005):
    """Noisy states (n, 2) and the current (n,) at the same times."""
    t = np.arange(0.0, duration, STEP)
    options = {"t_eval": t, "rtol": 1e-9, "atol": 1e-9}
    clean = solve_ivp(motion, (0.0, t[-1]), start, args=(current,), **options).y.T
    scale = np.sqrt(np.mean(clean**2, axis=0)).mean()
    states = clean + np.random.default_rng(seed).normal(0.0, noise * scale, clean.shape)
    return states, np.broadcast_to(current(t), t.shape)


experiments = {
    "a sweep": record(lambda t: 1.5 * np.sin(0.4 * t + 0.05 * t**2), [0.0, 0.0], seed=1),
    "two tones": record(lambda t: np.sin(1.1 * t) + 0.8 * np.cos(0.37 * t), [1.5, 0.0], seed=2),
    "slow": record(lambda t: 1.5 * np.sin(0.5 * t), [-1.0, 1.0], seed=3),
    "constant": record(lambda t: 1.0, [0.5, -1.0], seed=4),
}
states = [x for x, _ in experiments.values()]
currents = [u for _, u in experiments.values()]

figure, axes = plt.subplots(1, 4, figsize=(11, 2.6), sharey=True, layout="constrained")
for ax, (name, (x, u)) in zip(axes, experiments.items(), strict=True):
    t = STEP * np.arange(len(x))
    ax.plot(t, x[:, 0], color=bestk.plots.COLOURS[0], linewidth=1, label="position x")
    ax.plot(t, u, color=bestk.plots.GREY, linewidth=1, label="current u")
    ax.set(title=name, xlabel="time")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False, fontsize=8)
plt.show()

# %%
# First attempt: the states alone
# -------------------------------
# Somebody else set the current, and nobody mentioned it.
without = discover(states, STEP, degree=3, names=NAMES)
print(without.summary())

# %%
# Both equations are *proven*, and the second one is useless. The proof is about the candidate terms
# that it was given, and none of them contains u. The sign to look for is R²: one equation leaves
# next to nothing unexplained, the other one a fifth. The simulation says the same. It should follow
# the data for 20 time units:
print([f"{horizon:.1f}" for horizon in without.horizons])

# %%
# Second attempt: one long recording
# ----------------------------------
# With the current, and with the four experiments put one below the other, as a spreadsheet would
# have them.
stacked = discover(
    np.vstack(states), STEP, u=np.concatenate(currents), degree=3, names=NAMES, control_names=["u"]
)
print(stacked.summary())

# %%
# Now R² is poor for *both*, even for ``x' = v``, which holds by definition. The magnet seems to
# jump wherever one experiment ends and the next begins, and the derivative there is enormous. Four
# recordings are a list of four arrays, and no derivative is taken across their ends.
#
# Third attempt: only one of them
# -------------------------------
# The last experiment is the easiest to set up: the current is switched on, and that is all.
constant = discover(states[3], STEP, u=currents[3], degree=3, names=NAMES, control_names=["u"])
print(constant.summary())
print(f"\nfollows the data for {constant.horizon():.1f} time units")

# %%
# It fits, it follows the data to the end, it is proven, and it is wrong: there is no ``x`` in it. A
# current that is always 1 cannot be told from the number 1, nor ``x u`` from ``x``. No method can
# know better. But the last column tells us: the next best model, with other terms, is *as good*.
# All models that are as good can be listed.
lists = constant.near_optimal(within=1e-6)
print(f"{len(lists['v'].models)} models of v' are equally good, for example")
for model in lists["v"].models[:4]:
    print("   ", ", ".join(model.names))

# %%
# The remedy is an experiment, not an algorithm: let the current vary. (A current that follows the
# state, ``u = -2 x``, as in a control loop that works well, is as bad as a constant one. A little
# noise added to it on purpose helps.)
#
# All four
# --------
# A list of states and a list of currents:
found = discover(states, STEP, u=currents, degree=3, names=NAMES, control_names=["u"])
print(found.summary())

# %%
# These are the equations. Every other model of v' with five of the 20 terms is much worse, so the
# choice is no matter of luck. As a simulation they follow all four experiments to their end.
print([f"{horizon:.1f}" for horizon in found.horizons])
found.plot()
plt.show()

# %%
# An experiment that nobody has seen
# ----------------------------------
# Simulations start from any state, and take any current.
new = lambda t: 1.2 * np.sign(np.sin(0.9 * t))  # noqa: E731  switched back and forth
measured, _ = record(new, [0.2, 0.0], seed=9, noise=0.0)
t = STEP * np.arange(len(measured))
predicted = found.simulate(t, start=measured[0], u=new)
error = np.sqrt(np.mean((predicted - measured) ** 2) / np.mean(measured**2))
print(f"error of the prediction: {100 * error:.1f}% of the size of the motion")

figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
ax.plot(t, measured[:, 0], color=bestk.plots.GREY, linewidth=4, alpha=0.5, label="measured")
ax.plot(t, predicted[:, 0], color=bestk.plots.COLOURS[0], label="predicted")
ax.set(xlabel="time", ylabel="position x")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What is known beforehand
# ------------------------
# ``x' = v`` is no discovery. Terms can be asked for and ruled out, equation by equation. Say that
# the current enters once at most: then higher powers of it are left out of both equations.
asked = discover(
    states,
    STEP,
    u=currents,
    degree=3,
    names=NAMES,
    control_names=["u"],
    include={0: ["v"]},
    exclude=["u^2", "u^3", "x u^2", "v u^2"],
)
print(asked.summary())

# %%
# For the paper:
print(found.to_latex())

# %%
# In short
# --------
# * Give control inputs as ``u=``. A low R² in one equation says that something is missing.
# * Give several recordings as a list. A low R² in all equations, even the trivial ones, says that
#   rows were joined which do not belong together.
# * Look at the runner-up. If it is as good, the data cannot tell, however well the model fits.
# * Vary the input. Best of all, keep one experiment back to predict it.
