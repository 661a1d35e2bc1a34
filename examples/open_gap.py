"""
A gap that stays open
=====================

A real table, all products of up to three features, a model of eight terms: problems like this one
are easy to write down, and the proof may take hours. What is the answer worth then, and what can be
done? Six things, each in a few seconds.

The data are those of the first example: ten measurements of 442 diabetes patients, and the progress
of the disease one year later.
"""

# %%
# The library. Features are standardised before they are multiplied, and terms afterwards. Terms
# that repeat another one are dropped: sex has two values, so its square says nothing new, and a
# proof would have to rule out each model twice.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import bestk

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)


def library(features, degree):
    terms = make_pipeline(
        StandardScaler(), PolynomialFeatures(degree, include_bias=False), StandardScaler()
    )
    Z = terms.set_output(transform="pandas").fit_transform(features)
    return Z.loc[:, ~Z.round(9).T.duplicated()]


Z = library(X, degree=3)
usual = {"alpha": 1.0, "fit_intercept": True}
first = bestk.solve(Z, y, k=8, time_limit=3, **usual)
print(first)

# %%
# Read the gap
# ------------
# The lower bound holds for every model with at most eight of the terms, whatever stopped the run.
# So this much is proven already:
print(f"No model of eight terms has an objective below {first.lower_bound:.4g}.")
print(f"The one here has {first.objective:.4g}: at most {first.gap:.0%} could be gained.")

# %%
# The model was there from the start. What takes time is the proof: the lower line.
print(f"first model kept: {first.history['incumbent'][0] == first.objective}")
first.plot()
plt.show()

# %%
# 1. A smaller library
# --------------------
# A proof rules out all models of all terms on offer, so the surest help is to offer fewer. Of which
# features does the first model make use?
used = {factor.split("^")[0] for name in first.names for factor in name.split()}
smaller = library(X[[name for name in X if name in used]], degree=3)
print(f"{', '.join(sorted(used))}: {smaller.shape[1]} of {Z.shape[1]} terms")
second = bestk.solve(smaller, y, k=8, time_limit=20, **usual)
print(f"{smaller.shape[1]} terms: {second.status}, gap {second.gap:.2g}, {second.seconds:.2g} s")
print(f"the same model: {set(second.names) == set(first.names)}")

# %%
# Now it is proven that no other eight products *of these features* are better. About terms with
# other features nothing new is known: say so where you report it. Degree 2 is another small
# library, chosen before any data were seen. Its best model is worse:
squares = bestk.solve(library(X, degree=2), y, k=8, time_limit=20, **usual)
worse = squares.objective / first.objective - 1
print(f"degree 2: {squares.status}, {squares.seconds:.2g} s, objective {worse:.1%} higher")

# %%
# 2. A smaller model
# ------------------
# Every term more multiplies the number of models. Four of all the terms are no problem:
four = bestk.solve(Z, y, k=4, time_limit=20, **usual)
print(f"k = 4: {four.status}, {four.seconds:.2g} s, R² {four.r2:.3f} (k = 8: {first.r2:.3f})")

# %%
# 3. A box
# --------
# Among correlated terms there are many models with huge coefficients of opposite signs, and a proof
# has to rule them out. If you know that coefficients cannot be that large, say it with
# ``bounds=(lower, upper)``: the proof is then one for all models that you believe possible. If you
# do not know, ``"auto"`` takes a box from a first model.
boxed = bestk.solve(Z, y, k=5, bounds="auto", time_limit=20, **usual)
print(f"k = 5: {boxed.status}, {boxed.seconds:.2g} s")
print(f"proven: {boxed.is_proven}, proven in the box: {boxed.is_closed}")
print(*boxed.assumptions)

# %%
# *Conditional* is less than optimal: nobody vouches for the box, and a model with larger
# coefficients may be better. The page on wide data says how to choose a box that you can defend;
# with such a box as ``bounds`` the status is "optimal".
#
# 4. A looser goal
# ----------------
# ``gap_tol`` is what a proof has to reach, 0.01% unless you say otherwise. To prove that no model
# is better by more than 5% is cheaper.
loose = bestk.solve(smaller, y, k=8, gap_tol=0.05, time_limit=20, **usual)
print(f"gap_tol 5%: {loose.status}, {loose.n_nodes} nodes (0.01%: {second.n_nodes})")

# %%
# 5. More time
# ------------
# With ``checkpoint`` the open tree is kept in a file, every minute and at the end. A later run goes
# on from there, after a crash as well, and has one certificate for all of it. All cores are used
# unless ``n_threads`` says otherwise.
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "run.ckpt"
    today = bestk.solve(Z, y, k=5, time_limit=1, checkpoint=file, **usual)
    tomorrow = bestk.resume(file, Z, y, time_limit=2)
print(f"today:    gap {today.gap:.1%} after {today.n_nodes} nodes")
print(f"tomorrow: gap {tomorrow.gap:.1%} after {tomorrow.n_nodes} nodes")
print(f"gap not larger: {tomorrow.gap <= today.gap}")

# %%
# 6. Report it
# ------------
# Where nothing of this is possible, the gap belongs beside the model: how much better could another
# one be? A method without a bound leaves this question open as well, and does not say so.
print(
    f"8 of {Z.shape[1]} terms, R² {first.r2:.3f}, gap {first.gap:.0%} after {first.seconds:.0f} s"
)
