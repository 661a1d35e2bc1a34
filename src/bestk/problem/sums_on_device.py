"""Sums of products of rows on a device: rows go there once; sums and their digest come back."""

from dataclasses import replace
from typing import Any

import numpy as np

from bestk.base.constants import UNIT_ROUNDOFF
from bestk.base.device.dense import Dense
from bestk.base.fingerprint import DataDigest, digest_there
from bestk.problem.moments import Moments


class DeviceSums:
    """Moments about an origin that grow by rows, and stay on the device until they are wanted."""

    def __init__(self, origin: Moments, dense: Dense, digest: DataDigest | None = None) -> None:
        assert not origin.is_partial, "rows of wide data stay where they are"
        self.origin, self.dense = origin, dense
        self.n_rows, self.weight, self.digest = 0, 0.0, digest or DataDigest()
        p, xp = origin.n_features, dense.xp
        with dense.here():
            self._shift, self._units = xp.asarray(origin.shift), xp.asarray(origin.units)
            self._gram, self._moment, self._x_sum = xp.zeros((p, p)), xp.zeros(p), xp.zeros(p)
            self._of_y = xp.zeros(2)  # sums of squares, and of the targets themselves

    def add(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Rows as they are: they are converted, shifted and weighted there."""
        origin, xp, before = self.origin, self.dense.xp, self.n_rows
        self.n_rows += len(y)
        self.weight += float(len(y) if weight is None else weight.sum())
        target = np.asarray(y, dtype=np.float64) - origin.y_shift
        root = np.ones(len(y)) if weight is None else np.sqrt(weight)
        # What overflows is seen in the sums, and scaled by whoever asked for them.
        with self.dense.here(), np.errstate(over="ignore", invalid="ignore"):
            targets, roots = xp.asarray(target * root), xp.asarray(root)
            of_X = xp.zeros((), np.uint64)
            for rows, block in self.dense.blocks(X):
                doubles = block.astype(np.float64, copy=False)
                of_X += digest_there(xp, doubles, before + rows.start)
                chunk, t, r = self._scaled(doubles, roots[rows]), targets[rows], roots[rows]
                self._gram += chunk.T @ chunk
                self._moment += chunk.T @ t
                self._of_y += xp.stack([t @ t, r @ t])
                self._x_sum += r @ chunk
            self.digest.add(X, y, weight, of_X=int(self.dense.to_host(of_X)))

    def _scaled(self, rows: Any, roots: Any) -> Any:
        if self.origin.keep_sums:
            rows = rows - self._shift
        return rows * self._units * roots[:, None]

    def moments(self) -> Moments:
        host, keep = self.dense.to_host, self.origin.keep_sums
        with self.dense.here():
            yy, y_sum = host(self._of_y).tolist()
            # Either half is right; they may have been summed in another order.
            gram, x_sum = host(0.5 * (self._gram + self._gram.T)), host(self._x_sum)
            return replace(
                self.origin,
                gram=gram,
                moment=host(self._moment),
                yy=yy,
                x_sum=x_sum if keep else np.zeros_like(x_sum),
                y_sum=y_sum if keep else 0.0,
                weight=self.weight,
                n_rows=self.n_rows,
                error=(self.n_rows + 12) * UNIT_ROUNDOFF,
            )
