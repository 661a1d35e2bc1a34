"""Groups of features: labels or names of columns, read; categories turned into groups."""

import numbers
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from bestk.base.validation import as_features, counted, hint_for, names_of, pandas_for


def as_groups(
    groups: Any, p: int, names: tuple[str, ...] | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """(p,) numbers of groups, in the order of their first feature, and the names of the groups.

    ``groups`` are p labels, or {name: columns}, or a function that makes one of these of the names.
    A feature without a label is a group of its own that has its name.
    """
    columns = names or tuple(f"x{j}" for j in range(p))
    if callable(groups):
        if names is None:
            raise ValueError(
                "groups is a function of the names of features, but X has no names; give a data "
                'frame, and in a pipeline call set_output(transform="pandas")'
            )
        groups = groups(names)
    owners = _owners(groups, p, names)
    keys = [(owner,) if owner is not None else (None, j) for j, owner in enumerate(owners)]
    numbers_of = {key: g for g, key in enumerate(dict.fromkeys(keys))}
    labels = np.array([numbers_of[key] for key in keys], dtype=np.intp)
    sizes = np.bincount(labels, minlength=len(numbers_of))
    first = {g: columns[j] for j, g in reversed(list(enumerate(labels.tolist())))}
    given = {
        g: owner if isinstance(owner, str) else f"group {owner}"
        for g, (owner, *_) in enumerate(numbers_of)
        if owner is not None and (isinstance(owner, str) or sizes[g] > 1)
    }
    _require_distinct(given, labels, columns)
    called = first | given
    return labels, tuple(called[g] for g in range(len(called)))


def _owners(groups: Any, p: int, names: tuple[str, ...] | None) -> list[str | int | None]:
    """The label of each feature; None where it has none."""
    if groups is None:
        return [None] * p
    if isinstance(groups, Mapping):
        return _owners_of_columns(groups, p, names)
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise TypeError(
            f"groups must be {p} labels, one per feature, or {{name: columns}}, got {groups!r}"
        )
    labels = [_as_label(label) for label in groups]
    if len(labels) != p:
        raise ValueError(
            f"groups has {counted(len(labels), 'label')} for {counted(p, 'feature')}; give one per "
            "feature, or {name: columns}, or bestk.groups_by_source(columns) for what a pipeline "
            "makes of columns"
        )
    return labels


def _owners_of_columns(
    groups: Mapping[Any, Any], p: int, names: tuple[str, ...] | None
) -> list[str | int | None]:
    owners: list[str | int | None] = [None] * p
    for key, columns in groups.items():
        label = _as_label(key)
        if label is None:
            raise TypeError("groups has a group without a name; use strings or whole numbers")
        where = f"groups[{label!r}]"
        members = as_features(where, [columns] if np.ndim(columns) == 0 else columns, p, names)
        if not len(members):
            raise ValueError(f"{where} has no columns; name at least one, or leave this group out")
        for j in members:
            if owners[j] is not None:
                feature = repr(names[j]) if names else int(j)
                raise ValueError(
                    f"feature {feature} is in two groups, {owners[j]!r} and {label!r}; groups must "
                    "not overlap, so leave it out of one of them"
                )
            owners[j] = label
    return owners


def _as_label(label: Any) -> str | int | None:
    if label is None or type(label).__name__ == "NAType":  # the latter is missing in pandas
        return None
    if isinstance(label, str):
        return str(label)
    if not isinstance(label, bool) and isinstance(label, numbers.Integral):
        return int(label)
    if isinstance(label, float | np.floating) and (label.is_integer() or np.isnan(label)):
        return None if np.isnan(label) else int(label)
    raise TypeError(
        f"groups holds {label!r}; labels are strings or whole numbers, None for a feature on its "
        "own, or pass {name: columns}"
    )


def _require_distinct(given: dict[int, str], labels: np.ndarray, columns: tuple[str, ...]) -> None:
    """Names that were given to groups mean nothing else."""
    holders: dict[str, set[int]] = {}
    for label, column in zip(labels.tolist(), columns, strict=True):
        holders.setdefault(column, set()).add(label)
    seen: set[str] = set()
    for g, name in given.items():
        if name in seen:
            raise ValueError(f"groups has two groups named {name!r}; rename one of them")
        if holders.get(name, {g}) != {g}:
            raise ValueError(
                f"groups has a group {name!r}, but there is a column {name!r} outside it; rename "
                "one of them"
            )
        seen.add(name)


class Grouping(NamedTuple):
    """Features, the groups they belong to, and how both are called."""

    labels: np.ndarray
    group_names: tuple[str, ...]
    names: tuple[str, ...] | None

    def find(self, where: str, features: tuple[str | int, ...]) -> tuple[int, ...]:
        """Numbers of the groups of features, which are column names, indices or group names."""
        known = self._known() if any(isinstance(feature, str) for feature in features) else {}
        found = set()
        for feature in features:
            if isinstance(feature, str):
                meant = known.get(feature, set())
                if not meant:
                    hint = hint_for(feature, known)
                    raise ValueError(f"{where}: there is no feature or group {feature!r}{hint}")
                if len(meant) > 1:
                    raise ValueError(
                        f"{where}: {feature!r} is ambiguous, {len(meant)} groups have this name or "
                        "a column of this name; use the index of a column instead"
                    )
                found |= meant
            elif 0 <= feature < len(self.labels):
                found.add(int(self.labels[feature]))
            else:
                raise ValueError(
                    f"{where} holds {feature}, but features are numbered 0 to "
                    f"{len(self.labels) - 1}"
                )
        return tuple(sorted(found))

    def _known(self) -> dict[str, set[int]]:
        known: dict[str, set[int]] = {}
        for label, column in zip(self.labels.tolist(), self.names or (), strict=False):
            known.setdefault(column, set()).add(label)
        for g, name in enumerate(self.group_names):
            known.setdefault(name, set()).add(g)
        return known


class Encoded(NamedTuple):
    """A data frame in numbers: ``X``, the ``groups`` of its indicators, and what is left out.

    ``groups`` is {column: its indicators}, as `groups=` takes it, and ``baseline`` {column: the
    level that has no indicator}: coefficients of the others are differences from it.
    """

    X: Any
    groups: dict[str, list[str]]
    baseline: dict[str, Any]


def groups_of(frame: Any, numeric: Any = ()) -> Encoded:
    """One column of zeros and ones for each level of each categorical column but its first level.

    Columns of text, objects and categories become indicators named ``column=level``, all of one
    column a group. Numbers stay as they are, truth values become 0 and 1.

    Parameters
    ----------
    frame : data frame
        Of pandas or polars, or an Arrow table.
    numeric : list of str
        Columns that hold numbers as text, objects or categories, to be read as numbers.

    Returns
    -------
    Encoded
        (X, groups, baseline): a pandas data frame of floats, {column: indicators} and {column:
        level that is left out}. The first category is left out, without categories the first
        level in sorted order. A column with a single level has no indicator.

    Examples
    --------
    >>> import bestk, pandas
    >>> frame = pandas.DataFrame({"size": [1, 2, 3, 4], "region": ["n", "s", "w", "n"]})
    >>> X, groups, baseline = bestk.groups_of(frame)
    >>> list(X.columns), groups, baseline
    (['size', 'region=s', 'region=w'], {'region': ['region=s', 'region=w']}, {'region': 'n'})
    """
    table = _as_pandas(frame)
    if not isinstance(numeric, Iterable):
        raise TypeError(f"numeric must be a list of names of columns, got {numeric!r}")
    texts = [numeric] if isinstance(numeric, str) else list(numeric)
    columns: dict[str, Any] = {}
    groups: dict[str, list[str]] = {}
    baseline: dict[str, Any] = {}
    for name in texts:
        if name not in table.columns:
            raise ValueError(
                f"numeric: there is no column {name!r}{hint_for(str(name), table.columns)}"
            )
    for name in table.columns:
        column = table[name]
        if name in texts:
            made = {name: _numbers_in(name, column)}
        elif (kind := _kind(name, column)) == "number":
            made = {name: _as_floats(column)}
        elif kind == "truth":
            _require_no_missing(name, column)
            made = {name: column.to_numpy(dtype=bool).astype(np.float64)}
        else:
            baseline[name], made = _indicators(name, column)
            if made:
                groups[name] = list(made)
        for new in made:
            if new in columns:
                raise ValueError(
                    f"column {name!r}: two columns would be named {new!r}; rename one of them first"
                )
        columns |= made
    import pandas

    return Encoded(pandas.DataFrame(columns, index=table.index), groups, baseline)


def _as_pandas(frame: Any) -> Any:
    pandas = pandas_for("groups_of")
    table = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
    if not isinstance(table, pandas.DataFrame):
        raise TypeError(
            "frame must be a data frame of pandas or polars or an Arrow table, got one of type "
            f"{type(frame).__name__}"
        )
    if names_of(table) is None:
        raise ValueError(
            "frame has column names that are not strings; rename these first, such as with "
            "frame.columns = frame.columns.map(str)"
        )
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise ValueError(f"frame has several columns named {twice!r}; rename them first")
    if not len(table):
        raise ValueError(
            "frame has no rows, so levels of its categories are unknown; check the step that "
            "selected the rows"
        )
    return table


# What pandas.api.types.infer_dtype says about a column of objects.
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")
_DATES = ("datetime", "datetime64", "date", "time", "timedelta", "timedelta64", "period")


def _kind(name: str, column: Any) -> str:
    """ "number", "truth" or "level"."""
    import pandas
    from pandas.api import types

    dtype = column.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        return "level"
    word = types.infer_dtype(column, skipna=True)
    if word in _DATES:
        raise TypeError(
            f"column {name!r} holds dates or times ({dtype}); make numbers of them first, such as "
            "days since the first date, or categories, such as months"
        )
    if types.is_complex_dtype(dtype):
        raise TypeError(f"column {name!r} is complex; split it into real and imaginary parts")
    if types.is_bool_dtype(dtype) or word == "boolean":
        return "truth"
    return "number" if types.is_numeric_dtype(dtype) or word in _NUMBERS else "level"


def _as_floats(column: Any) -> np.ndarray:
    import pandas

    return pandas.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)


def _numbers_in(name: str, column: Any) -> np.ndarray:
    try:
        return _as_floats(column.astype(object))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"numeric: column {name!r} does not hold numbers: {error}; correct such values, or "
            "leave it out of numeric"
        ) from error


def _require_no_missing(name: str, column: Any) -> None:
    missing = int(column.isna().sum())
    if missing:
        raise ValueError(
            f"column {name!r} has {missing} missing values; drop these rows, or make them a level "
            f'of their own: frame[{name!r}] = frame[{name!r}].astype(object).fillna("missing")'
        )


def _indicators(name: str, column: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """The level that is left out, and indicators of all others."""
    import pandas

    _require_no_missing(name, column)
    try:
        used = column.unique().tolist()
    except TypeError as error:
        raise TypeError(
            f"column {name!r} holds objects that cannot be levels ({error}); make numbers or text "
            "of them, or leave the column out"
        ) from error
    if 2 < len(used) == len(column):
        raise ValueError(
            f"column {name!r} has a level of its own in each of {len(column)} rows, as identifiers "
            "have; leave it out, or list it in numeric= if it holds numbers as text"
        )
    if isinstance(column.dtype, pandas.CategoricalDtype):
        levels = column.cat.categories.tolist()
    else:
        levels = _sorted(used)
    codes = pandas.Categorical(column, categories=levels).codes
    made = {
        f"{name}={level}": (codes == i).astype(np.float64)
        for i, level in enumerate(levels)
        if i > 0
    }
    if len(set(map(str, levels))) < len(levels):
        raise ValueError(f"column {name!r} has different levels that read alike; rename them first")
    return levels[0], made


def _sorted(levels: list[Any]) -> list[Any]:
    try:
        return sorted(levels)
    except TypeError:
        return sorted(levels, key=str)
