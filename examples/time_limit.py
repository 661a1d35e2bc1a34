"""
Stopped early: what the gap still says
======================================

Some problems cannot be closed in the time one has. A solver that stops early should say what it
knows. bestk returns the best model so far and a lower bound that holds for all the models it has
not looked at, whatever stopped it.

The data are synthetic and made to be hard: 100 features, neighbours correlated 0.9, only 150 rows.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import bestk

X, y, truth = bestk.datasets.make_synthetic(150, 100, k=10, rho=0.9)

# %%
# A time limit
# ------------
result = bestk.solve(X, y, k=10, alpha=1e-3, time_limit=0.5)
print(result.message)
print(f"objective {result.objective:.2f}, proven lower bound {result.lower_bound:.2f}")
print(f"gap {result.gap:.1%}")

# %%
# The gap is relative to the whole objective. Many programs divide by the *explained* squares
# instead, ``y'y - objective``. That figure always looks better when the fit is good. It is reported
# too, for comparisons:
print(f"explained gap {result.explained_gap:.1%}, R² {result.r2:.3f}")

# %%
# Only the first of the two says how much smaller the objective of another model could be.
#
# A callback
# ----------
# A callback sees a :class:`bestk.Snapshot` after every batch of nodes. A true value stops the run,
# here at a gap of 10%. (``gap_tol=0.1`` would do the same and call the result optimal.) Starting
# from the model that was found already does no harm.
reached = {}


def watch(snapshot):
    for level in (0.3, 0.25, 0.2, 0.15, 0.1):
        if snapshot.gap <= level and level not in reached:
            reached[level] = snapshot
    return snapshot.gap <= 0.1


second = bestk.solve(
    X, y, k=10, alpha=1e-3, initial_support=result.support, callback=watch, time_limit=20
)
for level, snapshot in reached.items():
    print(f"gap {level:4.0%} after {snapshot.seconds:5.2f} s and {snapshot.n_nodes:5d} nodes")
print(second.status)

# %%
# What helps
# ----------
# More time always does. More knowledge does more: that no coefficient is negative, for example.
signed = bestk.solve(X, y, k=10, alpha=1e-3, bounds=(0, np.inf), time_limit=20)
print(f"{signed.status}: gap {signed.gap:.2g}, {signed.n_nodes} nodes, {signed.seconds:.2f} s")

# %%
# The model was the same in all three runs and was there from the start; only the bound moved. That
# is common: good models are found early, and most of the time goes into the proof.
print(f"first model kept: {result.history['incumbent'][0] == second.objective}")
print(f"same features: {(result.support == signed.support).all()}")

# %%
# It holds nine of the ten features that made the data. The best fit to noisy data need not be
# the truth, and no search can change that.
print(f"true features found: {np.isin(np.flatnonzero(truth), signed.support).sum()} of 10")
second.plot()
plt.show()
