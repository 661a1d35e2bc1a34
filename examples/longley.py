"""
Longley: every subset of nearly collinear data
==============================================

Longley's sixteen years of US employment are the classic test of least-squares programs: four of
the six features grow with time and tell nearly the same story. Which of them belong into the
model? And can an answer be *proven* where the columns are so close to each other?
"""

# %%
import itertools

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import longley
from statsmodels.stats.outliers_influence import variance_inflation_factor

import bestk

data = longley.load_pandas()
X, y = data.exog, data.endog
A = np.column_stack([np.ones(len(X)), X])
print(f"condition number with a constant: {np.linalg.cond(A):.1e}")
for j, name in enumerate(X, start=1):
    print(f"variance inflation of {name:8} {variance_inflation_factor(A, j):7.1f}")

# %%
# All sizes, with ``gap_tol=0``: nothing but a complete proof will do. There is no ridge penalty
# (``alpha=0``).
path = bestk.solve_path(X, y, ks=range(1, 7), fit_intercept=True, gap_tol=0)
print(path)

# %%
# The models are not nested. GNP is the best single feature, is in neither the best pair nor the
# best three, and comes back in the best four. AICc and BIC both choose these four.
for criterion in ("aicc", "bic"):
    best = path.best(criterion)
    print(f"{criterion}: k = {best.k}, {', '.join(best.names)}")

# %%
# Why this is proven
# ------------------
# Relaxations say little about nearly collinear features: their strength comes from the smallest
# eigenvalue of the correlation matrix, and that is close to zero. With few models left bestk
# tries them all instead, and it does not judge them by X'X alone, in which the condition number is
# squared. Every model that is reported, and every one that rounding in X'X leaves in doubt, is
# fitted by an orthogonal factorisation of its columns.
#
# With six features there are 63 models, so this proof can be repeated by hand.
smallest = dict.fromkeys(path, np.inf)
for k in path:
    for features in itertools.combinations(range(1, 7), k):
        chosen = A[:, [0, *features]]
        squares = np.sum((y - chosen @ np.linalg.lstsq(chosen, y)[0]) ** 2)
        smallest[k] = min(smallest[k], squares)
for k, result in path.items():
    print(f"k = {k}: bestk {result.objective:.4f}, smallest of all {smallest[k]:.4f}")
    assert np.isclose(result.objective, smallest[k], rtol=1e-7)

# %%
# Proven best is not the same as certain: with sixteen rows the numbers behind these choices are
# noisy, and no solver can change that. The coefficients (times the standard deviation of
# their feature) show it: that of GNP changes its sign once YEAR is in the model.
ax = bestk.plots.coefficients(path, scale=X.std())
ax.set_title("Longley: jobs (thousands) per standard deviation")
plt.show()
