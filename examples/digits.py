"""
An image as a mixture of a few others
=====================================

Mixtures have parts with positive weights: spectra of chemicals, prices of a basket, images. Here
handwritten digits of 8 x 8 pixels are mixed from a dictionary of 200 others. Each pixel is a row
and each image of the dictionary is a feature, so there are more features than rows, and without
limits on their number every image would be matched exactly. The question is the best mixture of
*three*.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import bestk

images, labels = load_digits(return_X_y=True)
images = images / 16.0
dictionary = np.concatenate([np.flatnonzero(labels == digit)[:20] for digit in range(10)])
targets = np.concatenate([np.flatnonzero(labels == digit)[40:41] for digit in range(10)])
X, Y = images[dictionary].T, images[targets].T
print(f"{X.shape[0]} pixels, {X.shape[1]} images to mix from, {Y.shape[1]} images to explain")

# %%
# With several columns in y, :class:`bestk.SparseRidge` solves one problem per column. They share
# the Gram matrix. ``bounds=(0, np.inf)`` asks for weights that are not negative.
mixture = bestk.SparseRidge(k=3, bounds=(0, np.inf), fit_intercept=False).fit(X, Y)

# %%
# Each of the ten is proven: none of the 1.3 million other mixtures of three is closer.
for label, result in zip(labels[targets], mixture.result_, strict=True):
    parts = ", ".join(f"{result.coef[j]:.2f} of a {labels[dictionary[j]]}" for j in result.support)
    print(f"{label}: {parts}; gap {result.gap:g}, R² {result.r2:.3f}, {result.seconds:.2f} s")

# %%
# What a sign costs: without the bounds the fit is closer, but the weights mean nothing any more.
free = bestk.SparseRidge(k=3, fit_intercept=False).fit(X, Y)
for name, model in (("nonnegative", mixture), ("free", free)):
    proven = sum(status is bestk.Status.OPTIMAL for status in model.status_)
    print(
        f"{name:12} squares {model.objective_.sum():.3f}, "
        f"{(model.coef_ < 0).sum()} negative weights, {proven} of 10 proven"
    )

# %%
# Top row: the image. Below: its three parts, as dark as their weight. Bottom: their sum.
figure, axes = plt.subplots(5, 10, figsize=(9, 4.8), layout="constrained")
for i, result in enumerate(mixture.result_):
    parts = [X[:, j] * result.coef[j] for j in result.support]
    parts += [np.zeros(len(X))] * (3 - len(parts))
    for ax, image in zip(axes[:, i], [Y[:, i], *parts, result.predict(X)], strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
for ax, name in zip(axes[:, 0], ["image", "part", "part", "part", "sum"], strict=True):
    ax.set_ylabel(name)
plt.show()
