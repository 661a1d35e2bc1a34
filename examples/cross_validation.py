"""
How many features? Cross-validation with proofs
===============================================

The best model of each size is one question, the right size another. Cross-validation answers it
with rows that a model has not seen. If the models inside it come from a heuristic, its answer
mixes two things: how much data support a size, and how lucky the heuristic was at that size. Here
every single fit is proven.

The data are those of the diabetes example: 442 patients, 65 terms.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import bestk

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
terms = make_pipeline(
    StandardScaler(), PolynomialFeatures(2, include_bias=False), StandardScaler()
).set_output(transform="pandas")
Z = terms.fit_transform(X)

# %%
# A grid of nine sizes and three penalties, five folds: 135 fits. The data are read once: what lies
# outside a fold has the sums of all rows minus those of the fold. (The scalers have seen all rows.
# They do not look at y; put them into a pipeline with ``GridSearchCV`` where that matters.)
model = bestk.SparseRidgeCV(ks=range(1, 10), alphas=(5, 20, 80), rule="one-se").fit(Z, y)
cv = model.cross_validation_
print(cv)

# %%
# Two rules
# ---------
# ``"min"`` takes the smallest mean error. ``"one-se"`` takes the smallest k whose error is within
# one standard error of it: the simplest model that the data cannot tell from the best. The rule
# can be changed afterwards, without another fit:
for rule in ("min", "one-se"):
    alpha, k = cv.best(rule)
    print(f"{rule:7} k = {k}, alpha = {alpha:g}")

# %%
# The estimator was asked for one-se and has fitted its choice on all rows, again with a proof.
print(model.result_)

# %%
# Do the folds agree on the features? A term that only one fold chooses is not a safe finding. (The
# sex of a patient has two values only, so its square carries the same information: the two of them
# count as one.)
chosen = [p[model.k_].names for p in cv.paths[cv.alphas.tolist().index(model.alpha_)]]
for name in sorted({name for names in chosen for name in names}):
    print(f"{name:10} in {sum(name in names for names in chosen)} of {len(chosen)} folds")

# %%
# The picture shows both choices. Beyond seven terms the error does not fall any more.
ax = cv.plot()
ax.set_title("Five folds, every fit proven")
plt.show()
