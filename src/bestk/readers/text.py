"""CSV and TSV files, also compressed."""

import csv
import gzip
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from bestk.base.tuning import tuning
from bestk.readers.arrow import arrow_chunks
from bestk.readers.files import DataError, File, opened
from bestk.readers.source import UNNAMED, Source, not_numeric

_MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}
_BOOLEANS = {"true": 1.0, "false": 0.0}
_DELIMITERS = (",", ";", "\t")


def text_source(path: File) -> Source:
    with _opened(path) as file:
        header = file.readline()
        if not header.strip():
            raise DataError(f"{path} has no column names in its first line")
        delimiter = max(_DELIMITERS, key=header.count)
        lines = chain([header], file)
        names = [name.strip() for name in next(csv.reader(lines, delimiter=delimiter))]
    names = [name or f"{UNNAMED}{i}" for i, name in enumerate(names, start=1)]

    def chunks(wanted: list[str], rows: int, use_threads: bool) -> Iterator[np.ndarray]:
        n_rows = 0
        try:
            import pyarrow
        except ImportError:
            pass
        else:
            # Arrow is several times faster, but knows less about what people put into files: where
            # it gives up, the plain reader goes on, or says in which row and column the trouble is.
            try:
                for chunk in _arrow_csv(path, delimiter, names, wanted, rows, use_threads):
                    n_rows += len(chunk)
                    yield chunk
                return
            except pyarrow.ArrowInvalid:
                pass
        yield from _plain_csv(path, delimiter, names, wanted, rows, n_rows)

    return Source(names, chunks)


def _opened(path: File) -> Any:
    dialect: Any = {"encoding": "utf-8-sig", "newline": ""}
    if not isinstance(path, Path):
        return path.open("rt", **dialect)
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    return opener(path, "rt", **dialect)


def _plain_csv(
    path: File, delimiter: str, names: list[str], wanted: list[str], rows: int, skip: int
) -> Iterator[np.ndarray]:
    places = [names.index(name) for name in wanted]
    # A getter of one place would give its text alone.
    pick = itemgetter(*places) if len(places) > 1 else itemgetter(slice(places[0], places[0] + 1))
    rows = max(min(rows, tuning().text_values // len(names)), 1)
    with _opened(path) as file:
        lines = csv.reader(file, delimiter=delimiter)
        next(lines)
        full = islice((line for line in lines if line), skip, None)
        while batch := list(islice(full, rows)):
            for i, line in enumerate(batch):
                if len(line) != len(names):
                    raise DataError(
                        f"row {skip + i + 1} of {path} has {len(line)} values, "
                        f"but there are {len(names)} columns"
                    )
            chosen = [pick(line) for line in batch]
            try:
                values = np.fromiter(map(float, chain.from_iterable(chosen)), float)
                chunk = values.reshape(len(batch), len(wanted))
            except ValueError:
                columns = zip(wanted, zip(*chosen, strict=True), strict=True)
                chunk = np.column_stack([_parsed(name, texts, skip) for name, texts in columns])
            yield chunk
            skip += len(batch)


def _parsed(name: str, texts: Iterable[str], n_before: int) -> np.ndarray:
    """Numbers of a column in which not everything looks like one."""
    values = []
    for row, text in enumerate(texts, start=n_before + 1):
        word = text.strip().lower()
        try:
            values.append(_BOOLEANS[word] if word in _BOOLEANS else float(word))
        except ValueError:
            if word not in _MISSING:
                raise not_numeric(name, f"text ({text!r} in row {row})") from None
            values.append(np.nan)
    return np.array(values)


def _arrow_csv(
    path: File, delimiter: str, names: list[str], wanted: list[str], rows: int, use_threads: bool
) -> Iterator[np.ndarray]:
    """Chunks by Arrow; ArrowInvalid wherever something is not plainly a number."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    with _opened(path) as file:
        first = next(islice(csv.reader(file, delimiter=delimiter), 1, 2), [])
    switches = {n for n, text in zip(names, first, strict=False) if text.lower() in _BOOLEANS}
    with opened(path) as source:
        reader = arrow_csv.open_csv(
            source,
            # The header is skipped, because it was read already and its names may have been mended.
            read_options=arrow_csv.ReadOptions(
                column_names=names,
                skip_rows=1,
                block_size=tuning().text_bytes,
                use_threads=use_threads,
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=wanted,
                # Types from the first rows would be wrong where a decimal point comes later.
                column_types={n: pa.bool_() if n in switches else pa.float64() for n in wanted},
                true_values=["true", "True", "TRUE"],
                false_values=["false", "False", "FALSE"],
                null_values=[],
            ),
        )
        with reader:
            yield from arrow_chunks(reader, wanted, rows)
