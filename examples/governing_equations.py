"""
From a noisy recording to its equations
=======================================

Three numbers are measured many times a second. They wiggle. Is there a law behind the wiggles, and
can one be *sure* of it? This page goes all the way from the recording to equations of motion, then
asks how far they can be trusted: what is proven, what is not, and how one notices that the data are
too few or too noisy.
"""

# %%
# The recording
# -------------
# To know the answer we make the data ourselves, with the system of Rössler:
# ``x' = -y - z``, ``y' = x + 0.2 y``, ``z' = 0.2 - 5.7 z + x z``. Everything that follows sees
# the noisy numbers only.
import matplotlib.pyplot as plt
import numpy as np
import pysindy as ps
from scipy.integrate import solve_ivp

import bestk
from bestk.sindy import OKRidge, discover

NAMES = ["x", "y", "z"]
TRUTH = [{"y", "z"}, {"x", "y"}, {"1", "z", "x z"}]
STEP = 0.0125


def roessler(t, state):
    x, y, z = state
    return [-y - z, x + 0.2 * y, 0.2 - 5.7 * z + x * z]


def record(duration, noise, seed=0):
    """Rows (n, 3), with noise in shares of the mean RMS of the states."""
    t = np.arange(0.0, duration, STEP)
    start = [-4.0, -4.0, 0.1]
    clean = solve_ivp(roessler, (0.0, t[-1]), start, t_eval=t, rtol=1e-10, atol=1e-10).y.T
    scale = np.sqrt(np.mean(clean**2, axis=0)).mean()
    return clean + np.random.default_rng(seed).normal(0.0, noise * scale, clean.shape)


states = record(60.0, noise=0.005)
t = STEP * np.arange(len(states))
print(f"{len(states)} rows, {len(states) * STEP:g} time units, noise 0.5%")

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.5, 3.4), width_ratios=(2, 1), layout="constrained"
)
for column, name, colour in zip(states.T, NAMES, bestk.plots.COLOURS, strict=False):
    left.plot(t, column, color=colour, linewidth=1, label=name)
left.set(xlabel="time", ylabel="state")
left.legend(frameon=False, ncols=3)
right.plot(states[:, 0], states[:, 1], color=bestk.plots.GREY, linewidth=0.6)
right.set(xlabel="x", ylabel="y", aspect="equal")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# From numbers to equations
# -------------------------
# Each derivative is to be a sum of a *few* terms out of many. Here the many are all products of x,
# y and z up to degree 5, 56 of them. :func:`bestk.sindy.discover` estimates derivatives, finds the
# best models of one to five terms on the first two thirds of the recording, and lets the last third
# choose among them.
found = discover(states, STEP, degree=5, names=NAMES)
print(found.summary())

# %%
# These are the equations that made the data. A picture says how well they do as a *simulation*,
# which is a harder test than predicting derivatives: started from the first row, nothing corrects
# them on the way.
found.plot()
plt.show()

# %%
# What the proof says
# -------------------
# A gap of zero is a statement about every model that was not chosen. For z' there are 27,720 ways
# to take three of 56 terms, and none of them fits these rows better. There is no threshold that
# could have been set otherwise, and no step-by-step search that could have taken a wrong turn.
for name, result in zip(NAMES, found.results, strict=True):
    print(f"{name}': objective {result.objective:.6g}, no model below {result.lower_bound:.6g}")

# %%
# And what it does not say
# ------------------------
# * It is about the library. A law with a sine in it is not among products, and the best sum of
#   products would be proven all the same.
# * It is about these rows. Derivatives of noisy states are estimates, so coefficients are too: they
#   are close to -5.7 and 0.2, not equal.
# * It is about a given number of terms. That number was chosen with the last third of the
#   recording, by AICc, and such a choice can be wrong.
#
# The right-hand column of the picture shows that choice (the numbers are in ``found.scores``). What
# one hopes to see is a cliff before the right number of terms, and after it nothing more to gain.
#
# How unique is each equation?
# ----------------------------
# Suppose a second model were almost as good, with other terms. Then the data would not really have
# decided. So the search goes on for the *runner-up*: the best model of the same size that lacks at
# least one of the terms. That is proven, too.
for name, result, other in zip(NAMES, found.results, found.runners_up, strict=True):
    terms, others = " + ".join(result.names), " + ".join(other.names)
    ratio = other.objective / result.objective
    print(f"{name}': {terms:12}   next: {others:14}   {ratio:.3f} times the objective")

# %%
# Most of each objective is noise in the derivatives, which no model explains, so a factor of 2 or 5
# is a wide margin. In z' it is the constant that can best be spared, and even that costs 9%.
#
# Too little data
# ---------------
# Now let the recording end early. The proof does not get weaker: the best model of its size is
# found and proven for 2 time units as for 60. But it may be the wrong model, and the runner-up
# often shows that *without knowing the truth*.


def report(label, discovery):
    """A line, and by what share of the objective the closest runner-up is worse."""
    right = [set(r.names) == truth for r, truth in zip(discovery.results, TRUTH, strict=True)]
    margin = discovery.margins.min()
    print(f"{label:>12}: {sum(right)} of 3 right, proven {discovery.is_proven}, ", end="")
    print(f"closest runner-up {100 * margin:.3g}% worse")
    return all(right), margin


options = {"degree": 3, "names": NAMES, "alphas": (1e-5,)}
durations = [2.0, 4.0, 8.0, 15.0, 30.0, 60.0]
short = [
    report(f"{duration:g} units", discover(record(duration, 0.005), STEP, **options))
    for duration in durations
]

# %%
# After 8 units the closest runner-up is within a fraction of a percent: some term is there by
# chance, and another would do as well. That is the alarm. Its silence is no guarantee, though:
# after 2 and 4 units the orbit has not been around once, and a wrong model can be the only good
# one for so little of it.
#
# Too much noise
# --------------
# The same with recordings that are long, but noisy.
noises = [0.0025, 0.005, 0.01, 0.02, 0.05, 0.1]
noisy = [
    report(f"{noise:.2%} noise", discover(record(60.0, noise), STEP, **options)) for noise in noises
]

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.2), sharey=True, layout="constrained")
for ax, values, answers in ((axes[0], durations, short), (axes[1], noises, noisy)):
    margins = [max(margin, 1e-4) for _, margin in answers]
    ax.loglog(values, margins, color=bestk.plots.GREY, linewidth=1, zorder=0)
    for right, colour, label in ((True, 0, "right"), (False, 1, "wrong")):
        shown = [i for i, answer in enumerate(answers) if answer[0] == right]
        points = np.array(values)[shown], np.array(margins)[shown]
        ax.scatter(*points, color=bestk.plots.COLOURS[colour], label=label)
    ax.set_xticks(values, [f"{value:g}" for value in values])
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set(xlabel="time units recorded", ylabel="closest runner-up is worse by (share)")
axes[1].set(xlabel="noise (share)")
axes[0].legend(frameon=False, title="equations")
plt.show()

# %%
# Here every wrong system of equations has a runner-up within one percent, and the right one has
# none. Less noise is not always better: with 0.25% the errors of *differentiating* stand out from
# the noise, and AICc pays for a term that explains them.
#
# What you know already
# ---------------------
# Knowledge replaces data. :class:`bestk.sindy.OKRidge` is the optimizer behind ``discover``, and
# works wherever PySINDy wants one. Suppose the recording is as short as the one of 8 units, but one
# knows how many terms to expect, that nothing but linear ones are in x', and that z decays, so that
# z is a term of z'.
library = ps.PolynomialLibrary(degree=3)
brief = record(8.0, noise=0.005)
terms = library.fit(brief).get_feature_names(NAMES)
linear = {"x", "y", "z"}


def fit(**knowledge):
    optimizer = OKRidge(alpha=1e-5, gap_tol=0.0, feature_names=terms, **knowledge)
    smooth = ps.SmoothedFiniteDifference(smoother_kws={"window_length": 9, "polyorder": 3})
    model = ps.SINDy(optimizer=optimizer, feature_library=library, differentiation_method=smooth)
    model.fit(brief, t=STEP, feature_names=NAMES)
    return model


model = fit(
    k=[2, 2, 3],
    exclude={0: [term for term in terms if term not in linear]},
    include={2: ["z"]},
)
model.print()
print(model.optimizer.summary())

# %%
# Or one knows how long the whole system should be, but not how the terms are shared out. With
# ``total_k`` they are shared out in the best way, exactly, over all three equations.
model = fit(k=4, total_k=7)
model.print()
print(f"terms per equation: {[len(result.names) for result in model.optimizer.results_]}")

# %%
# Squares are added over the equations here, so an equation with a large derivative counts for more.
# That is a choice, too, and one that no proof can make.
