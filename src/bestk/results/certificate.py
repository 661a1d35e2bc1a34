"""A proof as data: what a run claims, and the tree that shows it.

Nothing in here searches or proves; ``recorder.py`` collects, ``verification.py`` checks.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bestk.base.archive import Arrays, arrays_in, cut, header_in, naming, value_in, version_in
from bestk.base.question import Question
from bestk.base.structure import Structure

FORMAT, VERSION = "bestk certificate", 1
_NO_CERTIFICATE = (
    "this file holds no bestk certificate; pass one that certificate.save, bestk.storage.save or "
    "bestk fit --save wrote"
)


class SplitRecord(NamedTuple):
    """A split A = Q + T over some features (theory: split, cluster-bound).

    ``t`` are the charges on the diagonal of T, one per feature. Members of a cluster (positions
    within ``features``) have t = 0 and a block of T instead. Where ``lower`` and ``upper`` are not
    empty, its bounds are for models within this box only, those outside being too bad (theory:
    ridge-profile).
    """

    features: np.ndarray
    t: np.ndarray
    clusters: Sequence[np.ndarray] = ()
    matrices: Sequence[np.ndarray] = ()
    lower: np.ndarray = np.zeros(0)
    upper: np.ndarray = np.zeros(0)


@dataclass(frozen=True, kw_only=True, eq=False)
class ProofTree:
    """The nodes as columns. Node 0 is the root; parents come before their children.

    The supports of a node are those of its parent, after the parent's fixings, that contain
    ``feature`` (``inside``) or do not; all of them where feature is -1. Its dual vector with its
    split (-1: none) proves a bound for them and justifies its fixings: features put in, or out, for
    everything below. ``enumerated`` says that what is left after the fixings was tried support by
    support. Several proofs may hang below one node; the best of them counts.

    Rows of different lengths lie end to end: row i of ``dual_index`` ends at ``dual_ends[i]``.
    Features are numbered as in the problem, duals are in units of the standard form (theory: form).
    """

    parent: np.ndarray
    feature: np.ndarray
    inside: np.ndarray
    split: np.ndarray
    enumerated: np.ndarray
    dual_ends: np.ndarray
    dual_index: np.ndarray
    dual_value: np.ndarray
    in_ends: np.ndarray
    in_index: np.ndarray
    out_ends: np.ndarray
    out_index: np.ndarray

    def __len__(self) -> int:
        return len(self.parent)

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, column.name).nbytes for column in fields(self))

    def dual(self, node: int) -> tuple[np.ndarray, np.ndarray]:
        """(features, values) of the dual vector of a node."""
        row = _row(self.dual_ends, node)
        return self.dual_index[row], self.dual_value[row]

    def fixed_in(self, node: int) -> np.ndarray:
        return self.in_index[_row(self.in_ends, node)]

    def fixed_out(self, node: int) -> np.ndarray:
        return self.out_index[_row(self.out_ends, node)]

    @property
    def is_leaf(self) -> np.ndarray:
        leaf = np.ones(len(self), dtype=bool)
        leaf[self.parent[self.parent >= 0]] = False
        return leaf


def _row(ends: np.ndarray, i: int) -> slice:
    return slice(int(ends[i - 1]) if i else 0, int(ends[i]))


class ChoiceProof(NamedTuple):
    """What a proof about a structure has besides its tree, whose nodes decide on groups.

    ``chosen`` are the groups of the model: a chosen group may have coefficients zero. Node i holds
    no choice at all by row ``broken[i]`` of the rules (-1: no row says so, -2: that k groups are
    exceeded does). Row i of ``multipliers`` goes with its dual vector (theory: multipliers). Dual
    vectors and charges are about coordinates x with b = W x, where W is the identity but for
    blocks: upper triangles ``blocks`` with a positive diagonal over the features ``block_features``
    of a group, row by row and end to end (theory: groups). ``dependent`` features repeat others of
    their group up to rounding, so models need not use them.
    """

    chosen: np.ndarray
    broken: np.ndarray
    multipliers: np.ndarray
    block_ends: np.ndarray
    block_features: np.ndarray
    blocks: np.ndarray
    dependent: np.ndarray = np.zeros(0, dtype=np.int64)

    def bases(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(features, triangle) of each block."""
        features = cut(self.block_features, self.block_ends)
        squares = cut(self.blocks, _square_ends(features))
        return [(f, s.reshape(len(f), len(f))) for f, s in zip(features, squares, strict=True)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Certificate(Question):
    """A question, the answer of a run to it, and the proof.

    The claim: no admissible coefficients have an objective below ``lower_bound``, and ``coef`` has
    the objective ``objective``. Admissible are at most k nonzeros besides the ``free`` features,
    the included ones counted, none of them excluded, all within ``lower`` and ``upper``.

    ``copies`` holds pairs (feature, other): the first repeats the second up to a factor, so models
    need not use it. ``fingerprint`` identifies data and question; see
    :mod:`bestk.base.fingerprint`. ``is_box_assumed`` says that nobody gave the bounds: the run
    chose them (``bounds="auto"``). With a ``structure`` nodes of the tree decide on groups instead
    of features, and there are ``choices``.
    """

    fingerprint: str
    coef: np.ndarray = field(repr=False)
    intercept: float
    objective: float
    lower_bound: float
    copies: np.ndarray = field(repr=False)
    splits: tuple[SplitRecord, ...] = field(repr=False)
    tree: ProofTree = field(repr=False)
    choices: ChoiceProof | None = field(default=None, repr=False)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the claim takes for granted about coefficients, in words."""
        if self.is_box_assumed:
            return (
                "coefficients lie within a box chosen from the solution itself; models outside it "
                "may be better",
            )
        if np.isfinite(self.lower).any() or np.isfinite(self.upper).any():
            return ("coefficients lie within the bounds that were given",)
        return ()

    def verify(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        exact: bool = False,
        n_threads: int | None = None,
        device: str = "cpu",
        max_seconds: float | None = None,
        allow_long: bool = False,
    ):
        """Check the claim on the data, with none of the code that made it.

        Returns a :class:`bestk.verification.Verification`: whether the claim holds, the bound and
        the gap that were verified, and reasons where it does not. ``exact=True`` computes in
        rational numbers, without any rounding; for small problems. ``device="cuda"`` tries
        supports on a GPU, for proofs that would take a CPU hours. A proof that is forecast to take
        more than ``max_seconds``, an hour by default, is refused with an error unless
        ``allow_long``; once ``max_seconds`` are over, the verification is given up.
        """
        from bestk.verification.verify import verify

        return verify(
            self, X, y, sample_weight, exact=exact, n_threads=n_threads, device=device,
            max_seconds=max_seconds, allow_long=allow_long,
        )  # fmt: skip

    def verify_gram(
        self,
        G: Any,
        c: Any,
        yy: float,
        *,
        n_threads: int | None = None,
        device: str = "cpu",
        max_seconds: float | None = None,
        allow_long: bool = False,
    ):
        """:meth:`verify` for a problem that was given as G = X'X, c = X'y and yy = y'y."""
        from bestk.verification.verify import verify_gram

        return verify_gram(
            self, G, c, yy, n_threads=n_threads, device=device,
            max_seconds=max_seconds, allow_long=allow_long,
        )  # fmt: skip

    def save(self, path: str | Path) -> None:
        """Write the certificate to a compressed npz file, which :meth:`load` reads."""
        with open(path, "wb") as file:  # savez would add to a file name it does not like
            np.savez_compressed(file, allow_pickle=False, **self.to_arrays())

    @classmethod
    def load(cls, path: str | Path, *, max_bytes: int | None = None) -> "Certificate":
        """The certificate in a file written by :meth:`save` or :func:`bestk.storage.save`.

        A file whose arrays take more than `max_bytes` is refused before it is unpacked; 4 GiB by
        default, or four times the size of a larger file. It may come from a stranger: see
        "Files from strangers" in the documentation.
        """
        arrays = arrays_in(path, max_bytes)
        with naming(path):
            return cls.from_arrays(arrays)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Named plain arrays: what the file holds (see docs/certificates.md)."""
        plain = {name: getattr(self, name) for name in (*_PLAIN, "is_box_assumed")}
        header = json.dumps({"format": FORMAT, "version": VERSION, **plain})
        return {
            "certificate": np.array(header),
            **{name: getattr(self, name) for name in _ARRAYS},
            "free": self.free,
            **proof_arrays(self.tree, self.splits),
            **({} if self.structure is None else self.structure.to_arrays()),
            **choice_arrays(self.choices),
        }

    @classmethod
    def from_arrays(cls, arrays: Any) -> "Certificate":
        arrays = Arrays(arrays)
        header = header_in(arrays, "certificate")
        if header.get("format") != FORMAT:
            raise ValueError("this file holds no certificate of a model; pass one that bestk wrote")
        if version_in(header) != VERSION:
            raise ValueError(
                f"the certificate has format version {header['version']}, this bestk reads "
                f"{VERSION}; use the bestk that wrote it"
            )
        tree, splits = proof_of(arrays)
        return cls(
            **{name: value_in(header, name, kind) for name, kind in _PLAIN.items()},
            **{name: arrays[name] for name in _ARRAYS} | features_in(arrays),
            tree=tree,
            splits=splits,
            is_box_assumed=value_in(
                header, "is_box_assumed", bool, default=False
            ),  # not in old files
            structure=Structure.from_arrays(arrays),
            choices=choices_of(arrays),
        )


_PLAIN = {
    "fingerprint": str, "k": int, "alpha": float, "fit_intercept": bool, "intercept": float,
    "objective": float, "lower_bound": float,
}  # fmt: skip
_COLUMNS = tuple(column.name for column in fields(ProofTree))
_ARRAYS = ("include", "exclude", "lower", "upper", "coef", "copies")
_FEATURES = ("include", "exclude", "free")
_NO_FEATURES = np.zeros(0, dtype=np.int64)


def features_in(arrays: Any) -> dict[str, np.ndarray]:
    """Lists of features; those of nothing are of whole numbers, too, and old files have no free."""
    given = {name: arrays.get(name, _NO_FEATURES) for name in _FEATURES}
    return {name: array if array.size else _NO_FEATURES for name, array in given.items()}


def proof_arrays(tree: ProofTree, splits: Sequence[SplitRecord]) -> dict[str, np.ndarray]:
    """A tree and its splits as named plain arrays."""
    clusters = [cluster for split in splits for cluster in split.clusters]
    matrices = [np.ravel(matrix) for split in splits for matrix in split.matrices]
    return {
        **{f"tree.{name}": getattr(tree, name) for name in _COLUMNS},
        "splits.ends": ends_of([split.features for split in splits]),
        "splits.features": joined([split.features for split in splits], np.int32),
        "splits.t": _shortest(joined([split.t for split in splits], np.float64)),
        "splits.boxes": ends_of([split.lower for split in splits]),
        "splits.lower": joined([split.lower for split in splits], np.float64),
        "splits.upper": joined([split.upper for split in splits], np.float64),
        "splits.clusters": np.array([len(split.clusters) for split in splits], dtype=np.int64),
        "clusters.ends": ends_of(clusters),
        "clusters.members": joined(clusters, np.int32),
        "clusters.matrices": joined(matrices, np.float64),
    }


def choice_arrays(choices: ChoiceProof | None) -> dict[str, np.ndarray]:
    """The rest of a proof about a structure as named plain arrays; nothing without one."""
    if choices is None:
        return {}
    return {f"choices.{name}": array for name, array in choices._asdict().items()}


def choices_of(arrays: Any) -> ChoiceProof | None:
    """What :func:`choice_arrays` made."""
    if "choices.chosen" not in arrays:
        return None
    return ChoiceProof(**{name: arrays[f"choices.{name}"] for name in ChoiceProof._fields})


def _shortest(values: np.ndarray) -> np.ndarray:
    """In single precision where that changes none of them: half the space."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return single if np.array_equal(single, values) else values


def proof_of(arrays: Any) -> tuple[ProofTree, tuple[SplitRecord, ...]]:
    """The tree and the splits in arrays made by :func:`proof_arrays`."""
    arrays = Arrays(arrays)
    tree = ProofTree(**{name: arrays[f"tree.{name}"] for name in _COLUMNS})
    features = cut(arrays["splits.features"], arrays["splits.ends"])
    charges = cut(arrays["splits.t"], arrays["splits.ends"])
    boxes = arrays.get("splits.boxes", np.zeros(len(features), dtype=np.int64))  # none in old files
    nothing = np.zeros(0)
    lower = cut(arrays.get("splits.lower", nothing), boxes)
    upper = cut(arrays.get("splits.upper", nothing), boxes)
    members = cut(arrays["clusters.members"], arrays["clusters.ends"])
    blocks = cut(arrays["clusters.matrices"], _square_ends(members))
    counts = arrays["splits.clusters"]
    if counts.shape != (len(features),) or not len(features) == len(lower) == len(upper):
        raise ValueError("the file is broken: its splits are incomplete")
    if counts.size and (counts.dtype.kind not in "iu" or counts.min() < 0):
        raise ValueError("the file is broken: numbers of clusters are no whole numbers")
    if sum(counts.tolist()) != len(members):
        raise ValueError("the file is broken: its clusters are incomplete")
    splits, first = [], 0
    for i, count in enumerate(counts.tolist()):
        own = slice(first, first + count)
        pairs = zip(blocks[own], members[own], strict=True)
        matrices = tuple(b.reshape(len(m), len(m)) for b, m in pairs)
        cluster = tuple(members[own])
        splits.append(SplitRecord(features[i], charges[i], cluster, matrices, lower[i], upper[i]))
        first += count
    return tree, tuple(splits)


def _square_ends(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Where squares end that have as many rows and columns as these have entries."""
    total = np.cumsum([len(row) ** 2 for row in rows], dtype=np.float64)
    if len(total) and total[-1] > 2**52:
        raise ValueError("the file is broken: its blocks are too large")
    return total.astype(np.int64)


# Rows of different lengths lie end to end in one array.


def ends_of(rows: Sequence[Any]) -> np.ndarray:
    return np.cumsum([len(row) for row in rows], dtype=np.int64)


def joined(rows: Sequence[Any], dtype: Any) -> np.ndarray:
    return np.concatenate([np.zeros(0, dtype=dtype), *rows]).astype(dtype, copy=False)
