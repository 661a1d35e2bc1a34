"""
The best few of 65 terms
========================

Ten measurements of 442 diabetes patients, and the progress of the disease one year later. A linear
model of the ten is easy to read but misses interactions; with all products and squares there are 65
terms, too many to read. How good can a model with a handful of the 65 be?

There are 700 million ways to choose seven terms. The answer below is proven to be the best of them.
"""

# %%
# A pipeline makes the terms. The first scaler centres the measurements, so that a product is not
# just a copy of its factors; the second puts all terms on one scale, so that the small ridge
# penalty treats them alike. ``set_output`` keeps their names.
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
print(f"{Z.shape[0]} patients, {Z.shape[1]} terms, such as {', '.join(Z.columns[[2, 9, 12, 64]])}")

# %%
# How many terms?
# ---------------
# :func:`bestk.solve_path` finds the best model of every size. All sizes share one pass over the
# data. A status of "optimal" means: no model of this size or smaller is better, up to the gap.
path = bestk.solve_path(Z, y, ks=range(1, 10), alpha=1.0, fit_intercept=True)
print(path)
print(f"all sizes proven: {path.is_proven}")

# %%
# BIC asks for seven terms. They come from a search over all models, so this is the smallest BIC of
# *any* model with one to nine of the 65 terms, up to the gap and the small ridge penalty, and not
# only of those that a stepwise method happened to visit.
best = path.best("bic")
print(f"BIC chooses k = {best.k}")
print(best.equation("progression"))

# %%
# The same model inside a pipeline
# --------------------------------
# :class:`bestk.SparseRidge` is a scikit-learn estimator. The fitted estimator keeps the proof:
# what was found, what was proven, and how far apart the two are.
model = make_pipeline(*(step for _, step in terms.steps), bestk.SparseRidge(k=best.k, alpha=1.0))
model.set_output(transform="pandas").fit(X, y)
model[-1].result_

# %%
# A page about the whole path, with tables and pictures, is one call away. Give it a file name to
# write the page; it needs no other file.
page = path.to_html()
print(f"the report has {len(page) // 1024} KB")

# %%
# In pictures
# -----------
# On the left the objective of each size with its bound: where the two lines are one, the size is
# proven. On the right the coefficients. Up to eight terms the body mass index (bmi) and s5, a blood
# lipid, carry most of the model. At nine, s1 and s2 enter together with large opposite signs: two
# cholesterol values that nearly repeat each other.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
bestk.plots.path(path, left, criterion="bic")
bestk.plots.coefficients(path, right)
plt.show()
