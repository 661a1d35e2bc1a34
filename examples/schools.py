"""
Must have, must not, and the right sign
=======================================

Maths results of 303 Californian school districts: which share of the pupils is above the national
median? The best model on paper is not always one that people can use. Here three wishes are put
to the solver, and each time the answer is the proven best model *under that wish*, so what the
wish costs is a fact and not an artefact of the search.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from statsmodels.datasets import star98

import bestk

data = star98.load_pandas()
X = data.exog.iloc[:, :12]  # the rest are products of these
pupils = data.endog.sum(axis=1)
y = 100 * data.endog["NABOVE"] / pupils
options = {"k": 5, "fit_intercept": True, "sample_weight": pupils / pupils.mean()}

# %%
# Districts count by their number of pupils (``sample_weight``). The best five features are mostly
# about who the pupils are, not about what the schools do:
results = {"any five": bestk.solve(X, y, **options)}
print(results["any five"])

# %%
# Must not: features excluded by name
# -----------------------------------
origin = ["PERASIAN", "PERBLACK", "PERHISP"]
results["no origin"] = bestk.solve(X, y, exclude=origin, **options)
print(results["no origin"].equation("percent", digits=3))

# %%
# Must have: features included by name
# ------------------------------------
# A question about class size needs it in the model, and spending beside it.
asked = ["PTRATIO", "PERSPENK"]
results["with class size"] = bestk.solve(X, y, include=asked, **options)
print(results["with class size"].equation("percent", digits=3))

# %%
# More pupils per teacher (PTRATIO) would be *good* according to this model. Spending and class
# size are correlated, and one of them takes a sign that nobody believes.
#
# Signs: bounds on coefficients
# -----------------------------
# Bounds are a pair (lower, upper), one number per column or one for all. Zero must be allowed,
# since a feature that is left out has the coefficient zero.
lower = pd.Series(-np.inf, index=X.columns)
upper = pd.Series(np.inf, index=X.columns)
upper["PTRATIO"] = 0.0
lower["PERSPENK"] = 0.0
results["and its sign"] = bestk.solve(X, y, include=asked, bounds=(lower, upper), **options)
print(results["and its sign"].equation("percent", digits=3))

# %%
# With the right sign the best coefficient of class size is zero: beside spending, these data show
# no benefit of small classes. The feature still counts as one of the five, since it was asked
# for.
#
# What the wishes cost
# --------------------
table = pd.DataFrame(
    {
        "objective": {name: r.objective for name, r in results.items()},
        "R²": {name: r.r2 for name, r in results.items()},
        "gap": {name: r.gap for name, r in results.items()},
        "status": {name: str(r.status) for name, r in results.items()},
    }
)
print(table.round(4))

# %%
# Every row is proven, so the differences between them are differences between wishes.
coefs = pd.DataFrame({name: r.coef * X.std() for name, r in results.items()})
coefs = coefs[(coefs != 0).any(axis=1)]
ax = coefs.plot.barh(figsize=(7.5, 5), width=0.8, color=bestk.plots.COLOURS)
ax.axvline(0, color=bestk.plots.GREY, linewidth=0.8)
ax.invert_yaxis()
ax.set_xlabel("percentage points per standard deviation of the feature")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
