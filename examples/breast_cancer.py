"""
Correlated features: greedy, lasso and the proven best
======================================================

Thirty features of cell nuclei, benign (1) or malignant (0) as target. Ten quantities were each
recorded as mean, standard error and worst value, so many features nearly repeat each other:
radius, perimeter and area have correlations up to 0.998. Methods that choose one feature at a
time then make choices that they cannot take back.

A linear probability model keeps the example simple: all methods are judged by the same squares.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import lars_path

import bestk

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = (X - X.mean()) / X.std()
ks = range(1, 11)

# %%
# Three ways to choose k features
# -------------------------------
# The proven best of every size:
path = bestk.solve_path(X, y, ks=ks, fit_intercept=True)
assert path.is_proven


# %%
# Forward selection adds the feature that helps most, given those it has:
def squares(features):
    """Residual sum of squares of the least-squares fit on these features."""
    A = np.column_stack([np.ones(len(X)), X.iloc[:, features]])
    return float(np.sum((y - A @ np.linalg.lstsq(A, y)[0]) ** 2))


greedy: list[int] = []
for _ in ks:
    rest = [j for j in range(X.shape[1]) if j not in greedy]
    greedy.append(min(rest, key=lambda j: squares([*greedy, j])))

# %%
# The lasso: for each k the best support of that size anywhere on the path of penalties. It is
# refitted without the penalty, so that only its choice of features is compared, not its shrinkage.
_, _, steps = lars_path(X.to_numpy(), (y - y.mean()).to_numpy(), method="lasso")
supports = [np.flatnonzero(step).tolist() for step in steps.T]
lasso = {k: min((s for s in supports if len(s) == k), key=squares) for k in ks}

# %%
# What the choices cost
# ---------------------
excess = pd.DataFrame(
    {
        "best": path.objectives,
        "forward, % worse": [100 * (squares(greedy[:k]) / path[k].objective - 1) for k in ks],
        "lasso, % worse": [100 * (squares(lasso[k]) / path[k].objective - 1) for k in ks],
    },
    index=pd.Index(ks, name="k"),
)
print(excess.round(2) + 0.0)

# %%
# Forward selection is optimal up to four features and again at six. In between it cannot let go of
# what it took first: the best model of *five* features leaves out the best *single* feature, the
# worst value of the concave points.
for k in (1, 4, 5):
    print(f"best {k}:    {', '.join(path[k].names)}")
print(f"forward 5: {', '.join(X.columns[greedy[:5]])}")
print(f"lasso 5:   {', '.join(X.columns[lasso[5]])}")

# %%
# Less than two per cent for forward selection is little, up to thirteen for the lasso is more.
# Neither is known without the proven best to compare with. What makes it a fact is the lower
# bound.
print(f"squares of the best ten features found: {path[10].objective:.4f}")
print(f"proven: no ten features have less than  {path[10].lower_bound:.4f}")

ax = excess.iloc[:, 1:].plot(marker="o", color=[bestk.plots.BLUE, bestk.plots.RED], figsize=(7, 4))
ax.axhline(0, color=bestk.plots.GREEN, label="proven best")
ax.set(ylabel="squares above the proven best, %", xticks=ks)
ax.legend(["forward selection", "lasso, refitted", "proven best"], frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
