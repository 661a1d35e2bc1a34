"""
Lasso and best subset: a lesson with exercises
==============================================

The lasso and best subset selection both give a linear model with few features. They differ in what
they do to the coefficients, in how many useless features they take, and in when they predict well.
This lesson shows each of these on simulated data, where the truth is known. All figures are
computed when the script runs. Exercises and their answers are at the end of each part; download the
notebook below to work on them.

You should know least squares and cross-validation. Each part can be taught on its own.
"""

# %%
# Two problems
# ------------
# Both start from least squares, ``||y - X b||²``, for n rows and p features.
#
# * **Best subset** allows at most k nonzero coefficients, and asks for the smallest sum of squares.
#   The coefficients that are not zero are free.
# * **The lasso** adds the penalty ``lambda (|b_1| + ... + |b_p|)``. The corners of this penalty
#   make some coefficients zero, and its slope pulls all others towards zero.
#
# The lasso is a convex problem, solved in no time. Best subset is not convex: there are 142506 sets
# of 5 out of 30 features. Branch and bound finds the best one and proves it.
#
# Here is the truth of the lesson. Five features have the coefficient 1, and 25 have none.
# Neighbours are correlated. The *signal-to-noise ratio* (SNR) is the variance of ``X b`` over the
# variance of the noise.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LassoCV, lasso_path

import bestk

P, TRUE = 30, [0, 6, 12, 18, 24]
NAMES = [f"x{j}" for j in range(P)]


def simulate(rng, snr, n=100, rho=0.35):
    """(X, y) with correlations rho^|i - j|."""
    lags = np.abs(np.subtract.outer(np.arange(P), np.arange(P)))
    X = rng.multivariate_normal(np.zeros(P), rho**lags, size=n)
    signal = X[:, TRUE].sum(axis=1)
    variance = (rho**lags)[np.ix_(TRUE, TRUE)].sum()
    return X, signal + rng.normal(0, np.sqrt(variance / snr), n)


X, y = simulate(np.random.default_rng(1), snr=2)
subset = bestk.solve(X, y, k=5, fit_intercept=True)
print(subset)

# %%
# The truth is found, and the proof says that none of the 142506 sets fits better.
#
# 1. Shrinkage
# ------------
# We take the lasso at the first penalty for which five features are in the model, and compare the
# coefficients with the truth, which is 1 for each of them.
_, path, _ = lasso_path(X - X.mean(axis=0), y - y.mean())
five = np.argmax((path != 0).sum(axis=0) >= 5)
lasso = pd.Series(path[:, five], index=NAMES)
shown = pd.DataFrame({"lasso": lasso, "best subset": pd.Series(subset.coef, index=NAMES)})
shown = shown[(shown != 0).any(axis=1)]
print(shown.round(2))
ax = shown.plot.bar(figsize=(7.5, 3.5), color=bestk.plots.COLOURS, width=0.7)
ax.axhline(1, color=bestk.plots.GREY, linewidth=0.8)
ax.text(ax.get_xlim()[0], 1.02, " truth", color=bestk.plots.GREY)
ax.set_ylabel("coefficient")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
plt.show()

# %%
# All coefficients of the lasso are far too small. The penalty that keeps others out is the same one
# that shrinks these. If you *report* coefficients, this is a bias. If you only *predict*, it may
# help, as we shall see in part 3.
#
# **Exercise 1.** Fit least squares on the features that the lasso has chosen. Which
# coefficients do you get?
#
# **Answer.** Coefficients of the right size. Fitting once more after the lasso takes the bias away;
# this is called the *relaxed lasso*. But it keeps the lasso's choice, and here that has a false
# feature, a neighbour of a true one, and lacks a true one.
chosen = np.flatnonzero(path[:, five])
print("lasso:      ", [NAMES[j] for j in chosen])
print("best subset:", subset.names)
design = np.column_stack([np.ones(len(y)), X[:, chosen]])
print("fitted once more:", np.linalg.lstsq(design, y)[0][1:].round(2))

# %%
# 2. False positives
# ------------------
# In practice nobody tells us k or lambda: cross-validation chooses them. We count how many of the
# five true features are found, and how many false ones come along, in 20 data sets.
rows = []
for seed in range(20):
    A, b = simulate(np.random.default_rng(100 + seed), snr=2)
    subsets = bestk.SparseRidgeCV(ks=range(9), cv=5).fit(A, b)
    _, smallest = subsets.cross_validation_.best("one-se")  # the smallest k that is nearly as good
    coefs = {
        "lasso": LassoCV(cv=5).fit(A, b).coef_,
        "best subset": subsets.coef_,
        "best subset, one-se": bestk.solve(A, b, k=smallest, fit_intercept=True).coef,
    }
    for name, coef in coefs.items():
        found = np.flatnonzero(coef)
        true = np.isin(found, TRUE).sum()
        rows.append({"method": name, "true, of 5": true, "false, of 25": len(found) - true})
counts = pd.DataFrame(rows).groupby("method").mean()
print(counts)
print("the lasso takes more:", counts["false, of 25"].idxmax() == "lasso")

# %%
# All of them find nearly all true features. But the lasso that *predicts* best takes
# many false ones along. This is no accident: with a penalty large enough to keep them out, the true
# coefficients would be shrunk too much, and predictions would get worse. So cross-validation takes
# a small penalty.
#
# **Exercise 2.** ``LassoCV`` chooses the smallest error. Use the one-standard-error rule for
# the lasso. How many false features are left, and what happens to the coefficients?
#
# **Answer.** Fewer, but the coefficients shrink even more.
A, b = simulate(np.random.default_rng(100), snr=2)
cv = LassoCV(cv=5).fit(A, b)
errors = cv.mse_path_.mean(axis=1)
spread = cv.mse_path_.std(axis=1, ddof=1) / np.sqrt(5)
best = errors.argmin()
simple = cv.alphas_[np.argmax(errors <= errors[best] + spread[best])]  # from the largest on
for name, penalty in {"smallest error": cv.alpha_, "one-se": simple}.items():
    coef = lasso_path(A - A.mean(axis=0), b - b.mean(), alphas=[penalty])[1][:, 0]
    false = np.setdiff1d(np.flatnonzero(coef), TRUE)
    print(f"{name:15} {len(false)} false, mean of the true ones {coef[TRUE].mean():.2f}")

# %%
# 3. Where the lasso wins
# -----------------------
# Hastie, Tibshirani and Tibshirani (*Statistical Science* 35, 2020) compared both over a range of
# noise. We repeat a small part of their study. Each method is tuned on 100 further rows, and
# judged by its *relative risk*: the squared error of the predicted signal, as a share of the
# signal's variance. 0 is perfect, and the model without features has 1.
#
# The relaxed lasso, in their simplified form, mixes the lasso's coefficients with those of least
# squares on the same features. Best subset gets a fourth contender: with a ridge penalty ``alpha``
# it shrinks, too. Mazumder, Radchenko and Dedieu (*Operations Research* 71, 2023) propose this for
# noisy data.
SNRS = [0.1, 0.25, 0.7, 2, 6]
SIZES = range(9)


def lasso_fits(X, y):
    """A row of coefficients for each penalty, and least squares on the same features."""
    largest = np.abs(X.T @ y).max() / len(y)
    coefs = lasso_path(X, y, alphas=largest * np.geomspace(1, 0.01, 50))[1].T
    refits = np.zeros_like(coefs)
    for coef, refit in zip(coefs, refits, strict=True):
        active = np.flatnonzero(coef)
        refit[active] = np.linalg.lstsq(X[:, active], y)[0]
    return coefs, refits


def candidates(X, y):
    """{method: all models that tuning chooses from}."""
    lasso, refits = lasso_fits(X, y)
    shares = np.linspace(0, 1, 5)
    paths = [bestk.solve_path(X, y, ks=SIZES, alpha=alpha) for alpha in (0, 10, 50, 200)]
    assert all(path.is_proven for path in paths)
    subsets = [np.array([result.coef for result in path.results]) for path in paths]
    return {
        "lasso": lasso,
        "relaxed lasso": np.vstack([s * lasso + (1 - s) * refits for s in shares]),
        "best subset": subsets[0],
        "best subset with ridge": np.vstack(subsets),
    }


def risks(seed, snr):
    rng = np.random.default_rng(seed)
    (X, y), (V, v) = simulate(rng, snr), simulate(rng, snr)
    new, _ = simulate(np.random.default_rng(999), snr, n=5000)
    signal = new[:, TRUE].sum(axis=1)
    for method, coefs in candidates(X, y).items():
        tuned = coefs[np.argmin(((v - coefs @ V.T) ** 2).mean(axis=1))]
        risk = np.mean((signal - new @ tuned) ** 2) / np.mean(signal**2)
        yield {"SNR": snr, "method": method, "relative risk": risk, "features": (tuned != 0).sum()}


study = pd.DataFrame([row for snr in SNRS for seed in range(12) for row in risks(seed, snr)])
table = study.pivot_table(index="SNR", columns="method", values="relative risk")
print(table.round(3))
print(study.pivot_table(index="SNR", columns="method", values="features").round(1))
noisy, clear = table.loc[0.25], table.loc[6]
print("much noise: lasso before best subset:", noisy["lasso"] < noisy["best subset"])
print("little noise: best subset before lasso:", clear["best subset"] < clear["lasso"])

# %%
ax = table.plot(loglog=True, marker="o", figsize=(7.5, 4), color=bestk.plots.COLOURS)
ax.set_xticks(SNRS, SNRS)
ax.minorticks_off()
ax.set_xlabel("signal-to-noise ratio")
ax.set_ylabel("relative risk")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# With much noise the lasso predicts better than best subset: the choice of features is mostly luck
# there, and shrinkage limits the damage. With little noise best subset is better: the right
# features are found, and shrinkage only harms. The relaxed lasso and best subset with ridge can do
# both, and none of the others is much better than these at any level of noise. Look at the second
# table, too: the models of best subset are smaller.
#
# Be careful with conclusions. Here the truth has five equal effects, which is the case that best
# subset was made for. The paper has other truths, and you can change ``TRUE`` and its coefficients.
#
# **Exercise 3.** An SNR of 0.25 means that even the true model explains only 20% of the variance
# of y. Why? What is it for an SNR of 6? Which of them is your field like?
#
# **Answer.** The share is SNR / (1 + SNR).
print({snr: round(snr / (1 + snr), 2) for snr in SNRS})

# %%
# 4. Correlated features
# ----------------------
# What if a useless feature is nearly a copy of a useful one? We put a noisy copy of x0 into the
# table, at four levels of correlation, and count how often each method takes the copy: at all, and
# together with x0. The lasso's penalty is chosen by cross-validation, and k is 5.


def with_copy(seed, correlation):
    rng = np.random.default_rng(seed)
    X, y = simulate(rng, snr=2)
    copy = correlation * X[:, 0] + np.sqrt(1 - correlation**2) * rng.normal(size=len(y))
    return pd.DataFrame(np.column_stack([X, copy]), columns=[*NAMES, "copy"]), y


rows = []
for correlation in (0.5, 0.8, 0.9, 0.97):
    for seed in range(20):
        A, b = with_copy(seed, correlation)
        penalised = LassoCV(cv=5).fit(A, b).coef_ != 0
        exact = bestk.solve(A, b, k=5, fit_intercept=True).coef != 0
        rows += [
            {"correlation": correlation, "method": name, "copy": on[P], "both": on[P] and on[0]}
            for name, on in {"lasso": penalised, "best subset": exact}.items()
        ]
copies = pd.DataFrame(rows).groupby(["correlation", "method"]).mean().unstack()
print(copies)

# %%
# The lasso often takes both, and divides the coefficient between them. For best subset a second
# copy is a waste of one of five places, so it takes one of the two: the right one nearly always,
# and at 0.97 sometimes the wrong one. No method can avoid that, because the data hardly tell the
# two apart. What can be done is to say so. ``near_optimal`` lists all models whose objective is
# within 5% of the best:
A, b = with_copy(3, 0.97)
near = bestk.near_optimal(A, b, k=5, within=0.05, fit_intercept=True)
for model in near.models:
    print(model.names, f"{model.objective / near.best.objective - 1:.2%} worse")

# %%
# **Exercise 4.** Which features does the list call necessary? Why is x0 not one of them?
#
# **Answer.** Those that every good model has. x0 is not, because a model with the copy instead
# is nearly as good.
print([near.names[j] for j in near.necessary])

# %%
# 5. What a proof adds
# --------------------
# Before there were exact methods, best subset was approximated: *forward selection* adds, step by
# step, the feature that helps most. It can be misled. Here x0 and x1 explain y together, each of
# them alone explains little, and a decoy explains a part of y at once.
rng = np.random.default_rng(5)
base = rng.normal(size=200)
x0, x1 = base + 0.3 * rng.normal(size=200), -base + 0.3 * rng.normal(size=200)
y2 = x0 + x1 + 0.1 * rng.normal(size=200)
decoy = y2 + 0.4 * rng.normal(size=200)
B = pd.DataFrame({"x0": x0, "x1": x1, "decoy": decoy, "x3": rng.normal(size=200)})


def forward(X, y, k):
    """Names of k features, each the best addition to those before it."""
    chosen = []
    for _ in range(k):
        rest = [name for name in X if name not in chosen]
        fits = [np.linalg.lstsq(X[[*chosen, name]], y)[1][0] for name in rest]
        chosen.append(rest[int(np.argmin(fits))])
    return chosen


greedy = forward(B, y2, 2)
proven = bestk.solve(B, y2, k=2)
squares = np.linalg.lstsq(B[greedy], y2)[1][0]
print(f"forward selection {greedy}: {squares:.3f}")
print(
    f"proven best       {proven.names}: {proven.objective:.3f}, {proven.status}, gap {proven.gap}"
)

# %%
# Without the proof, a bad model could mean two things: the data do not support a better one, or
# the search has missed it. The lower bound separates them. In part 3, no difference between
# the curves comes from an unlucky search.
#
# A proof does **not** say that the features are the true ones, nor that the model predicts well.
# Part 3 shows that the proven best subset can predict worse than the lasso.
#
# **Exercise 5.** Give forward selection and best subset the data of part 2. How often do they
# differ with k = 5? What does that say about forward selection on data of this kind?
#
# **Answer.** Rarely: features that are only a little correlated do not mislead it. But you know
# this only because the best model is known.
differ = 0
for seed in range(20):
    A, b = simulate(np.random.default_rng(100 + seed), snr=2)
    A = pd.DataFrame(A - A.mean(axis=0), columns=NAMES)
    exact = bestk.solve(A, b, k=5, fit_intercept=True)
    differ += set(forward(A, b - b.mean(), 5)) != set(exact.names)
print(f"different in {differ} of 20 data sets")

# %%
# Which one, then?
# ----------------
# * You want to *report* a few features and their effects: best subset, with
#   ``near_optimal`` beside it. The lasso's coefficients are biased, and its list is long.
# * You want to *predict*, with much noise and many small effects: the lasso, or best subset with a
#   ridge penalty chosen by cross-validation (``SparseRidgeCV(alphas=...)``).
# * You do not know the noise: try both, and compare them by nested cross-validation, as the
#   clinical example does.
