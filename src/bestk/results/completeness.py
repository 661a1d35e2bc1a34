"""The proof that a list of models is complete, as data.

For every size of models there is a tree (see `certificate.ProofTree`). Each of its leaves holds no
support below the threshold, but for those that contain a support of the list. Where only few
supports of k features are below it, these are listed instead, and one tree shows that they are all:
whatever is smaller is a part of one of them.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bestk.base.archive import Arrays, arrays_in, cut, header_in, naming, value_in, version_in
from bestk.base.question import Question
from bestk.base.structure import Structure
from bestk.results.certificate import (
    ChoiceProof,
    ProofTree,
    SplitRecord,
    choice_arrays,
    choices_of,
    ends_of,
    features_in,
    joined,
    proof_arrays,
    proof_of,
)

FORMAT, VERSION = "bestk list of models", 1


class SizeProof(NamedTuple):
    """The tree for models of at most `size` features, its splits, and more with a structure."""

    size: int
    tree: ProofTree
    splits: tuple[SplitRecord, ...]
    choices: ChoiceProof | None = None


class ListedModel(NamedTuple):
    """A support of the list, with coefficients whose objective is at most the threshold."""

    support: np.ndarray
    values: np.ndarray
    intercept: float


@dataclass(frozen=True, kw_only=True, eq=False)
class CompletenessCertificate(Question):
    """A question, a threshold, models, and the proof that there are no others.

    The claim: every model of the list has an objective of at most ``threshold``. Every admissible
    support of at most k features, all that are included among them, whose best objective is below
    the threshold contains the support of a listed model. With ``only_k`` that is claimed of
    supports of exactly k features alone. None of the list contains another one.

    With a structure there is one proof, of size k: for the same question in which no choice may
    contain all groups of a listed one, nothing is below the threshold.

    ``largest`` holds all supports of k features below the threshold, if the only tree is for these;
    else it is None. ``copies`` and ``fingerprint`` are as in :class:`bestk.Certificate`.
    """

    fingerprint: str
    threshold: float
    only_k: bool
    copies: np.ndarray = field(repr=False)
    models: tuple[ListedModel, ...] = field(repr=False)
    largest: tuple[np.ndarray, ...] | None = field(repr=False)
    proofs: tuple[SizeProof, ...] = field(repr=False)

    def verify(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        n_threads: int | None = None,
        device: str = "cpu",
        max_seconds: float | None = None,
        allow_long: bool = False,
    ):
        """Check the claim on the data, with none of the code that made it.

        Returns a :class:`bestk.verification.completeness.ListVerification`.
        """
        from bestk.verification.completeness import verify_list

        return verify_list(
            self, X, y, sample_weight, n_threads=n_threads, device=device,
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
        from bestk.verification.completeness import verify_list_gram

        return verify_list_gram(
            self, G, c, yy, n_threads=n_threads, device=device,
            max_seconds=max_seconds, allow_long=allow_long,
        )  # fmt: skip

    def save(self, path: str | Path) -> None:
        """Write the certificate to a compressed npz file, which :meth:`load` reads."""
        with open(path, "wb") as file:
            np.savez_compressed(file, allow_pickle=False, **self.to_arrays())

    @classmethod
    def load(cls, path: str | Path, *, max_bytes: int | None = None) -> "CompletenessCertificate":
        """The list in a file; `max_bytes` as in :meth:`bestk.Certificate.load`."""
        arrays = arrays_in(path, max_bytes)
        with naming(path):
            return cls.from_arrays(arrays)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Named plain arrays: what the file holds."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        plain["sizes"] = [proof.size for proof in self.proofs]
        plain["has_largest"] = self.largest is not None
        largest = self.largest or ()
        header = json.dumps({"format": FORMAT, "version": VERSION, **plain})
        arrays = {
            "list": np.array(header),
            **{name: getattr(self, name) for name in _ARRAYS},
            "models.ends": ends_of([model.support for model in self.models]),
            "models.features": joined([model.support for model in self.models], np.int64),
            "models.values": joined([model.values for model in self.models], np.float64),
            "largest.ends": ends_of(largest),
            "largest.features": joined(largest, np.int64),
            "models.intercepts": np.array([m.intercept for m in self.models], dtype=np.float64),
        }
        for number, proof in enumerate(self.proofs):
            named = (proof_arrays(proof.tree, proof.splits) | choice_arrays(proof.choices)).items()
            arrays |= {f"{number}.{name}": array for name, array in named}
        if self.structure is not None:
            arrays |= self.structure.to_arrays()
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Any) -> "CompletenessCertificate":
        arrays = Arrays(arrays)
        header = header_in(arrays, "list")
        if header.get("format") != FORMAT:
            raise ValueError("this file holds no certificate of a list; pass one that bestk wrote")
        if version_in(header) != VERSION:
            raise ValueError(
                f"the list has format version {header['version']}, this bestk reads {VERSION}; "
                "use the bestk that wrote it"
            )
        ends, intercepts = arrays["models.ends"], arrays["models.intercepts"]
        if intercepts.shape != ends.shape or intercepts.dtype.kind != "f":
            raise ValueError("the file is broken: not every model has an intercept")
        rows = zip(
            cut(arrays["models.features"], ends), cut(arrays["models.values"], ends),
            intercepts.tolist(), strict=True,
        )  # fmt: skip
        largest = tuple(cut(arrays["largest.features"], arrays["largest.ends"]))
        sizes, proofs = value_in(header, "sizes", list), []
        if len(sizes) > value_in(header, "k", int) + 1:
            raise ValueError("the file is broken: it has more proofs than sizes of models")
        for number, size in enumerate(sizes):
            own = arrays.of_part(f"{number}.")
            size = value_in({"size of a proof": size}, "size of a proof", int)
            proofs.append(SizeProof(size, *proof_of(own), choices_of(own)))
        return cls(
            **{name: value_in(header, name, kind) for name, kind in _PLAIN.items()},
            **{name: arrays[name] for name in _ARRAYS} | features_in(arrays),
            models=tuple(ListedModel(*row) for row in rows),
            largest=largest if value_in(header, "has_largest", bool) else None,
            proofs=tuple(proofs),
            structure=Structure.from_arrays(arrays),
        )


_PLAIN = {
    "fingerprint": str, "k": int, "alpha": float, "fit_intercept": bool, "is_box_assumed": bool,
    "threshold": float, "only_k": bool,
}  # fmt: skip
_ARRAYS = ("include", "exclude", "free", "lower", "upper", "copies")
