"""Groups by the names that transformers of scikit-learn give: all that comes of one column."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from bestk.base.validation import hint_for, names_of, require_distinct

# What follows the name of a column in names of what is made of it: health_good, health=good, age^2.
_MADE = re.compile(r"([_=].*|\^\d+)?", re.DOTALL)
# Where the name of a column may end in a product of several, too.
_ENDS = re.compile(r"[_=^ ]|\Z")
_MISSING = "missingindicator_"


@dataclass(frozen=True)
class BySource:
    """The source of each feature, one of ``columns``; what :func:`groups_by_source` returns.

    It is called with the names of all features, wherever these are known at last.
    """

    columns: tuple[str, ...]

    def __call__(self, names: tuple[str, ...]) -> list[str | None]:
        sources = [self._source(name) for name in names]
        if names and not any(sources):
            column = self.columns[0]
            raise ValueError(
                f"groups_by_source: no feature is made of one of its columns, such as {column!r}"
                f"{hint_for(column, names)}"
            )
        return sources

    def _source(self, name: str) -> str | None:
        """None for what is made of several columns, such as products, and for other names."""
        if name in self.columns:
            return name
        column, rest = self._beginning(name)
        if column is None or not _MADE.fullmatch(rest):
            return None
        while rest := rest.partition(" ")[2]:
            other, rest = self._beginning(rest)
            if other not in (None, column):
                return None
        return column

    def _beginning(self, name: str) -> tuple[str | None, str]:
        """The longest column that a name or the factor of a product begins with, and the rest."""
        texts = [text.removeprefix(_MISSING) for text in _without_steps(name)]
        found = [
            (column, text[len(column) :])
            for text in texts
            for column in self.columns
            if text.startswith(column) and _ENDS.match(text, len(column))
        ]
        return max(found, key=lambda one: len(one[0]), default=(None, name))


def _without_steps(name: str) -> Iterator[str]:
    """A name, and what is left of it without ``step__`` in front, as a ColumnTransformer writes."""
    step = ""
    while name and " " not in step:
        yield name
        step, _, name = name.partition("__")


def groups_by_source(columns: Any) -> BySource:
    """Everything that a pipeline makes of one column is one group: indicators, splines, powers.

    Which levels a category has may differ from fold to fold, so the groups of a table are known
    only inside a pipeline. This finds them by the names that transformers give: ``health_good``,
    ``step__health_good``, ``age_sp_0``, ``age^2`` and ``missingindicator_age`` come from the
    columns ``health`` and ``age``. Products of several columns and other names are features of
    their own. If names of two columns begin alike, the longer one that fits is taken.

    Parameters
    ----------
    columns : data frame, or list of str
        The columns before the pipeline, or those of them that are to be groups.

    Returns
    -------
    BySource
        For ``groups=``. The features need names: call ``set_output(transform="pandas")``.

    Examples
    --------
    >>> import bestk, pandas
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> X = pandas.DataFrame({"health": ["good", "poor", "fair"] * 4, "sex": ["m", "f"] * 6})
    >>> encoder = OneHotEncoder(drop="first", sparse_output=False)
    >>> model = make_pipeline(encoder, bestk.SparseRidge(k=1, groups=bestk.groups_by_source(X)))
    >>> result = model.set_output(transform="pandas").fit(X, X["health"] == "poor")[-1].result_
    >>> result.group_names, result.names
    (['health'], ['health_good', 'health_poor'])
    """
    names = names_of(columns)
    if names is None:
        names = (columns,) if isinstance(columns, str) else columns
    if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"columns must be a data frame with names, or names of columns, got {columns!r}"
        )
    names = tuple(names)
    if not names:
        raise ValueError("columns is empty; name at least one column")
    require_distinct(names)
    return BySource(names)
