"""
Spectra: more wavelengths than samples
======================================

A spectrometer measures how much near-infrared light a sample of wheat absorbs, at hundreds of
wavelengths. A laboratory measures its protein, which is slow. A calibration predicts protein from
the spectrum. Which wavelengths does it need? And what can be *proven* about them, with 700
wavelengths, 100 samples, and neighbours that are nearly copies of each other?

This page begins with two attempts that fail, and says at the end what stays unproven.
"""

# %%
# The spectra
# -----------
# We make the data ourselves, to know what is in them. Wheat is a mixture of five constituents, each
# with some overlapping bands. Grains scatter light: this stretches every spectrum by a factor of
# its own, and adds a sloping baseline. Detectors have noise, and the laboratory has an error, too.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import LinearConstraint
from scipy.signal import savgol_filter
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import LassoCV
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import bestk
from bestk import rules

WAVELENGTHS = np.arange(1100, 2500, 2)  # nm
NAMES = [f"{w} nm" for w in WAVELENGTHS]
LAB_ERROR = 0.15  # % protein
BANDS = {  # centre and width in nm, height
    "water": [(1190, 28, 0.1), (1450, 45, 1.1), (1790, 60, 0.12), (1940, 50, 2.2)],
    "protein": [(1186, 30, 0.08), (1510, 30, 0.3), (1690, 30, 0.25), (1980, 35, 0.35)]
    + [(2055, 32, 0.65), (2180, 30, 0.75), (2300, 30, 0.45)],
    "oil": [(1212, 22, 0.25), (1395, 30, 0.2), (1725, 20, 0.8), (1762, 20, 0.65)]
    + [(2145, 20, 0.3), (2308, 18, 1.3), (2348, 20, 1.1)],
    "fibre": [(1220, 40, 0.08), (1490, 55, 0.3), (1780, 45, 0.15), (2090, 60, 0.55)]
    + [(2270, 30, 0.45), (2335, 28, 0.65), (2480, 40, 0.6)],
    "starch": [(1200, 35, 0.08), (1440, 50, 0.3), (1580, 60, 0.25), (1700, 50, 0.12)]
    + [(1930, 60, 0.3), (2100, 55, 0.9), (2280, 35, 0.55), (2322, 30, 0.5)],
}


def measure(n, rng):
    """Spectra of n samples as a data frame, and their protein as the laboratory sees it."""
    water, protein = rng.uniform(8, 16, n), rng.normal(12.5, 2, n).clip(8, 18)
    oil, fibre = rng.normal(2.5, 0.6, n).clip(1, 5), rng.normal(9, 1.5, n).clip(5, 14)
    parts = np.column_stack([water, protein, oil, fibre])
    parts = np.column_stack([parts, 100 - parts.sum(axis=1)])  # the rest is starch
    bells = [
        sum(h * np.exp(-0.5 * ((WAVELENGTHS - c) / w) ** 2) for c, w, h in bands)
        for bands in BANDS.values()
    ]
    scatter = np.exp(rng.normal(0, 0.12, (n, 1)))
    offset, slope = rng.normal(0, 0.05, (n, 1)), rng.normal(0.05, 0.02, (n, 1))
    A = scatter * (0.15 + parts / 100 @ np.array(bells))
    A += offset + slope * (WAVELENGTHS - 1800) / 700
    A += rng.normal(0, 3e-4, A.shape) * (1 + A**2)  # dark samples send back little light
    return pd.DataFrame(A, columns=NAMES), protein + rng.normal(0, LAB_ERROR, n)


draws = np.random.default_rng(0)
X, y = measure(100, draws)
X_test, y_test = measure(200, draws)  # for the end of each section
print(f"{len(X)} samples, {X.shape[1]} wavelengths; protein {y.min():.1f} to {y.max():.1f} %")


def error(model, X=X_test):
    """Root mean squared error on the test samples, in % protein."""
    return np.sqrt(np.mean((np.ravel(model.predict(X)) - y_test) ** 2))


# %%
# First attempt: absorbances as they are
# --------------------------------------
# Four wavelengths, with the default penalty of zero. The limit on nodes stands for our patience.
first = bestk.solve(X, y, k=4, fit_intercept=True, node_limit=200)
print(first)
print(f"test error {error(first):.2f}, error of the laboratory {LAB_ERROR}")

# %%
# R² looks good, and two things are wrong.
#
# *Nothing is proven.* The lower bound is 0, and patience does not help: any hundred wavelengths
# fit a hundred samples exactly, and without a penalty a relaxation may use a little of each. The
# page on wide data explains this. The gap is honest about it.
#
# *The error is twice that of the laboratory.* Scatter multiplies spectra, and no sum of four
# absorbances can undo that.
#
# Second attempt: a better preprocessing, and an automatic box
# ------------------------------------------------------------
# The *standard normal variate* (SNV) subtracts from each spectrum its mean and divides by its
# standard deviation. A derivative by Savitzky and Golay removes what is left of the baseline. Both
# look at one spectrum at a time, so no test row can leak into them.


def snv(A):
    A = np.asarray(A)
    return pd.DataFrame(
        (A - A.mean(axis=1, keepdims=True)) / A.std(axis=1, keepdims=True), columns=NAMES
    )


def derivative(A):
    return pd.DataFrame(savgol_filter(snv(A), 21, 2, deriv=1, axis=1), columns=NAMES)


figure, axes = plt.subplots(1, 3, figsize=(11, 2.8), layout="constrained")
for ax, (title, step) in zip(
    axes, {"absorbance": np.asarray, "SNV": snv, "SNV, derivative": derivative}.items(), strict=True
):
    shades = plt.cm.viridis((y - y.min()) / np.ptp(y))
    for spectrum, shade in zip(np.asarray(step(X)), shades, strict=True):
        ax.plot(WAVELENGTHS, spectrum, color=shade, linewidth=0.4)
    ax.set(title=title, xlabel="wavelength (nm)")
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# (The brighter a line, the more protein.) The page on wide data says that a proof needs limits on
# coefficients, and that ``bounds="auto"`` chooses some. Two wavelengths only, so that the truth can
# be proven without any:
Z = StandardScaler().set_output(transform="pandas").fit_transform(snv(X))
for bounds in ("auto", None):
    two = bestk.solve(Z, y, k=2, fit_intercept=True, bounds=bounds)
    pair = ", ".join(f"{name} {b:+.2f}" for name, b in two.named_coef.items())
    print(f"bounds={bounds!s:5} {two.status!s:12} objective {two.objective:.2f}   {pair}")

# %%
# "Conditional" means: proven in a box that nobody vouches for. Here the best model is outside. It
# takes the *difference* of two neighbours, with large coefficients of opposite sign. This is what
# good models of spectra often do, and what the box forbids: a first model with small coefficients
# made it small. So an automatic box is a poor guess for spectra. A penalty is a better remedy.
#
# What works: a penalty that cross-validation chooses
# ---------------------------------------------------
# All steps are in one pipeline. With ``alpha`` of 1 and more, which is 1% of the samples, every fit
# can be proven. (Try smaller ones with ``time_limit=0.5``, or you will wait: limits hold for each
# of the many fits.)
folds = KFold(5, shuffle=True, random_state=0)


def pipeline(*steps):
    return make_pipeline(FunctionTransformer(derivative), *steps).set_output(transform="pandas")


sparse = pipeline(
    StandardScaler(),
    bestk.SparseRidgeCV(ks=range(1, 7), alphas=[1, 3, 10], cv=folds, rule="one-se"),
).fit(X, y)
print(sparse[-1].cross_validation_)
print(sparse[-1].result_)

# %%
# No five of the 700 wavelengths have a smaller penalised error. With less of a penalty the gap
# stays open, and without one nothing is proven at all:
Z = sparse[:-1].transform(X)
k, alpha = sparse[-1].k_, sparse[-1].alpha_
for a in (alpha, 0.1, 0):
    tried = bestk.solve(Z, y, k=k, alpha=a, fit_intercept=True, node_limit=100)
    print(f"alpha {a:<5g} {tried.status!s:11} gap {tried.gap:.0%}")

# %%
# Compared with PLS and the lasso
# -------------------------------
# Spectroscopists use partial least squares (PLS), which makes a few sums of *all* wavelengths. The
# lasso is the usual way to choose some. Each method has the same folds to choose its settings.
squares = "neg_mean_squared_error"
sizes = {"plsregression__n_components": range(1, 13)}
pls = GridSearchCV(pipeline(PLSRegression(scale=False)), sizes, cv=folds, scoring=squares)
lasso = pipeline(
    StandardScaler(), LassoCV(alphas=np.geomspace(3e-3, 1, 20), cv=folds, max_iter=50_000)
)
pls.fit(X, y)
lasso.fit(X, y)
compared = pd.DataFrame(
    [
        ("PLS", len(NAMES), error(pls)),
        ("lasso", np.count_nonzero(lasso[-1].coef_), error(lasso)),
        ("bestk", k, error(sparse)),
    ],
    columns=["method", "wavelengths", "test error"],
)
print(compared.round(3))
print("PLS before the others:", compared["test error"].idxmin() == 0)
print("within 5% of each other:", np.ptp(compared["test error"]) < 0.05 * error(pls))

# %%
# PLS comes first, by less than a test of 200 samples can tell. All three are close to the error of
# the laboratory, below which nothing can be seen. So the choice of five wavelengths does not buy
# accuracy. It buys a formula that can be read, and it costs next to nothing.
#
# How far may a wavelength move?
# ------------------------------
# Neighbours are nearly the same feature. So "1648 nm" is not a finding, but a range around it may
# be one. With the other four ``include``-d, ``near_optimal`` lists every wavelength that could
# stand in its place, at most 5% above the best objective, and proves that there is no other:
best = sparse[-1].result_


def ranges(places):
    """Runs of neighbouring wavelengths, such as "1636-1660, 2142"."""
    runs = np.split(places, np.flatnonzero(np.diff(places) > 2) + 1)
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


figure, ax = plt.subplots(figsize=(9, 3), layout="constrained")
for row, (name, own) in enumerate(zip(best.names, best.support, strict=True)):
    others = np.setdiff1d(best.support, own)
    found = bestk.near_optimal(
        Z, y, k=k, include=others, below=1.05 * best.objective, alpha=alpha, fit_intercept=True
    )
    assert found.complete
    places = [np.setdiff1d(model.support, others) for model in found.models]
    places = np.sort(WAVELENGTHS[np.concatenate(places)])
    ax.plot(places, np.full(len(places), row), "|", color=bestk.plots.COLOURS[0], markersize=12)
    ax.plot(WAVELENGTHS[own], row, "o", color=bestk.plots.COLOURS[1])
    print(f"{name}: {ranges(places)}")
ax.set(yticks=range(k), yticklabels=best.names, xlabel="what may stand in its place (nm)")
ax.set(title="At most 5% above the best", xlim=(1100, 2500), ylim=(-0.6, k - 0.4))
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# One wavelength is certain up to 2 nm, and it is no band of protein: 1942 nm is where water absorbs
# most, so the model corrects for moisture there. The others may move further, or be replaced by one
# at a quite different place. Here each is moved alone. The list of *all* good models is longer:
many = bestk.near_optimal(Z, y, k=k, within=0.02, alpha=alpha, fit_intercept=True)
print(f"{len(many)} models within 2%, complete: {many.complete}")
print("in all of them:", [many.names[j] for j in many.necessary])

# %%
# A model with neighbours in it may be no use, because two filters cannot be that close. Sets of
# neighbours are windows, and a rule allows at most one wavelength of each:
windows = [rules.exclusive(*NAMES[i : i + 20]) for i in range(0, len(NAMES) - 10, 10)]
spread = bestk.solve(Z, y, k=k, alpha=alpha, fit_intercept=True, rules=windows)
print(f"{spread.status}, {spread.objective / best.objective - 1:.1%} above: {spread.names}")

# %%
# An instrument with a few filters
# --------------------------------
# There is a catch. SNV needs the *whole* spectrum, so these five wavelengths cannot be measured
# alone. A cheap instrument has a lamp, a detector and a few filters. Each filter lets a band of
# about 20 nm through, and the readings behind them are all that is known. There are 69 filters on
# offer, one every 20 nm.
#
# So the table is another one: 69 columns instead of 700, and no SNV. With more rows than columns, a
# proof needs neither a penalty nor a box.
CENTRES = np.arange(1110, 2490, 20)
FILTERS = [f"{c} nm" for c in CENTRES]


def readings(A, shift=0.0):
    """What a detector reads behind the filters, if they are all `shift` nm off."""
    through = np.exp(-0.5 * ((WAVELENGTHS[:, None] - CENTRES - shift) / 8.5) ** 2)
    light = 10 ** -np.asarray(A) @ (through / through.sum(axis=0))
    return pd.DataFrame(-np.log10(light), columns=FILTERS)


F, F_test = readings(X), readings(X_test)
filters = bestk.SparseRidgeCV(ks=range(1, 6), cv=folds, rule="one-se").fit(F, y)
print(filters.cross_validation_)
print(filters.result_)
pls = GridSearchCV(
    PLSRegression(scale=False), {"n_components": range(1, 13)}, cv=folds, scoring=squares
)
print(f"test error, {filters.k_} filters: {error(filters, F_test):.3f}")
print(f"test error, PLS with all {len(FILTERS)} filters: {error(pls.fit(F, y), F_test):.3f}")
print("filters within 5% of PLS:", error(filters, F_test) < 1.05 * error(pls, F_test))

# %%
# Of all sets of four filters this one is proven the best, without any condition. It is as good as
# PLS with all of them. (Both are worse than the spectrometer, because scatter is not corrected.)
#
# A filter that is not where it should be
# ---------------------------------------
# Filters are made with a tolerance of about a nanometre, and they drift with temperature. What if
# all of them are 1 nm off?
off = readings(X_test, shift=1.0)
print(f"test error, filters 1 nm off: {error(filters, off):.2f}")

# %%
# The instrument is useless. Three neighbours measure a slope and a curvature, which are sensitive
# to where they are measured. The test could not tell, because its filters are the same.
#
# Two remedies come to mind. A *rule* keeps filters apart: at most one of three neighbours. Or we
# ask for what we want: a shift of all filters must not change the mean prediction by more than
# 0.1 % protein per nm. This change is a sum of coefficients times slopes of the mean spectrum, so
# it is a linear *constraint*.
k = filters.k_
slopes = (readings(X, 1.0) - readings(X, -1.0)).mean().to_numpy() / 2
apart = [rules.exclusive(*FILTERS[i : i + 3]) for i in range(len(FILTERS) - 2)]
steady = LinearConstraint(slopes, -0.1, 0.1)
rows = []
for wish, options in {
    "none": {},
    "apart": {"rules": apart},
    "steady": {"constraints": steady},
    "both": {"rules": apart, "constraints": steady},
}.items():
    chosen = bestk.solve(F, y, k=k, fit_intercept=True, **options)
    rows.append(
        {
            "wish": wish,
            "status": str(chosen.status),
            "price": f"{chosen.objective / filters.result_.objective - 1:.1%}",
            "error": round(error(chosen, F_test), 2),
            "1 nm off": round(error(chosen, off), 2),
            "filters": ", ".join(chosen.names),
        }
    )
print(pd.DataFrame(rows).to_string(index=False))

# %%
# Keeping filters apart costs little, and helps nothing on its own: the distance was not the reason.
# The constraint helps, and its price is known exactly. Each of the four is proven, so no other four
# filters that are steady fit these samples better.
#
# How sure is the choice?
# -----------------------
# All other choices that are apart and steady, and at most 10% above the best of them:
wishes = {"fit_intercept": True, "rules": apart, "constraints": steady}
found = bestk.near_optimal(F, y, k=k, within=0.1, **wishes)
print(f"{len(found)} models, complete: {found.complete}")
for model in found.models:
    print(f"{model.objective / found.best.objective - 1:5.1%}  {', '.join(model.names)}")
print("in all of them:", [found.names[j] for j in found.necessary])

# %%
# And the best ones of 20 resamples of the samples:
stability = bestk.stability(F, y, k=k, n_resamples=20, random_state=0, **wishes)
print(stability)

# %%
# No filter is in all models of the list. But the list is short, the next model costs 6%, and most
# resamples choose the same four. This choice is far more certain than that of wavelengths was.
#
# Check the proof
# ---------------
# The certificate of the last model names the rules and the constraint. A program that shares no
# code with the search checks it on the data:
print(chosen.certificate.verify(F, y))

# %%
# In short
# --------
# * Without a penalty, nothing is proven about four of 700 wavelengths, and an automatic box hides
#   good models: differences of neighbours have large coefficients.
# * A penalty of some percent of the samples makes proofs fast, and cross-validation did not ask for
#   less. Give a time limit when you try smaller ones.
# * PLS predicts best, by a little. A few wavelengths come close, and can be read.
# * Say a range of wavelengths, not a wavelength: ``near_optimal`` gives it.
# * Ask for what the instrument needs. What was proven about wavelengths said nothing about
#   filters that move, until it was part of the question.
