"""CSV and TSV files, also compressed."""

import csv
import gzip
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from bestk.base.tuning import tuning
from bestk.base.validation import counted
from bestk.readers.coding import BOOLEANS, Coding, is_text
from bestk.readers.files import DataError, File, opened
from bestk.readers.formats.arrow import arrow_chunks
from bestk.readers.formats.source import UNNAMED, Source
from bestk.readers.limits import MOST_COLUMNS, LimitedLines

_DELIMITERS = (",", ";", "\t")
_BATCH_TEXT = 1 << 26
"""Characters of a batch."""


def text_source(path: File) -> Source:
    with _opened(path) as file:
        lines = LimitedLines(path, file)
        header = lines.read()
        if not header.strip():
            raise DataError(f"{path} has no column names in its first line; write them there")
        delimiter = max(_DELIMITERS, key=header.count)
        if header.count(delimiter) >= MOST_COLUMNS:
            raise DataError(f"{path} has more than {MOST_COLUMNS} columns")
        rows = csv.reader(chain([header], lines), delimiter=delimiter)
        names = [name.strip() for name in next(rows)]
        lines.row_ends()
        first = next((row for row in rows if row), [])
    names = [name or f"{UNNAMED}{i}" for i, name in enumerate(names, start=1)]
    kinds = {name: is_text(entry) for name, entry in zip(names, first, strict=False)}
    switches = {n for n, entry in zip(names, first, strict=False) if entry.lower() in BOOLEANS}

    def chunks(
        wanted: list[str], rows: int, use_threads: bool, coding: Coding
    ) -> Iterator[np.ndarray]:
        n_rows = 0
        try:
            import pyarrow as pa
        except ImportError:
            pass
        else:
            # Arrow is several times faster, but knows less about what people put into files: where
            # it gives up, the plain reader goes on, or says in which row and column the trouble is.
            types = {name: pa.bool_() if name in switches else pa.float64() for name in wanted}
            types |= {name: pa.string() for name in wanted if name in coding.levels}
            try:
                batches = _arrow_csv(path, delimiter, names, wanted, types, use_threads)
                for chunk in arrow_chunks(batches, wanted, rows, coding):
                    n_rows += len(chunk)
                    yield chunk
                return
            except pa.ArrowInvalid:
                pass
        yield from _plain_csv(path, delimiter, names, wanted, rows, n_rows, coding)

    texts = {name: kind for name, kind in kinds.items() if kind is not None}
    return Source(names, chunks, texts=texts)


def _opened(path: File) -> Any:
    dialect: Any = {"encoding": "utf-8-sig", "newline": ""}
    if not isinstance(path, Path):
        return path.open("rt", **dialect)
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    return opener(path, "rt", **dialect)


def _plain_csv(
    path: File,
    delimiter: str,
    names: list[str],
    wanted: list[str],
    rows: int,
    skip: int,
    coding: Coding,
) -> Iterator[np.ndarray]:
    all_numbers = coding.levels.keys().isdisjoint(wanted)
    place_of = {name: place for place, name in enumerate(names)}
    places = [place_of[name] for name in wanted]
    # A getter of one place would give its text alone.
    pick = itemgetter(*places) if len(places) > 1 else itemgetter(slice(places[0], places[0] + 1))
    rows = max(min(rows, tuning().text_values // len(names)), 1)
    with _opened(path) as file:
        for batch in _batches(path, file, delimiter, rows, skip):
            for i, line in enumerate(batch):
                if len(line) != len(names):
                    raise DataError(
                        f"row {skip + i + 1} of {path} has {counted(len(line), 'value')} for "
                        f"{counted(len(names), 'column')}; correct this row"
                    )
            chosen = [pick(line) for line in batch]
            chunk = _numbers(chain.from_iterable(chosen)) if all_numbers else None
            if chunk is None:
                columns = zip(wanted, zip(*chosen, strict=True), strict=True)
                chunk = np.column_stack([_column(*column, skip, coding) for column in columns])
            yield chunk.reshape(len(batch), len(wanted))
            skip += len(batch)


def _batches(
    path: File, file: Any, delimiter: str, rows: int, skip: int
) -> Iterator[list[list[str]]]:
    """Rows that are not blank, at most so many at a time; fewer, if they are very long."""
    lines = LimitedLines(path, file)
    batch: list[list[str]] = []
    began = 0
    for i, row in enumerate(csv.reader(lines, delimiter=delimiter)):
        lines.row_ends()
        if i == 0 or not row:
            continue
        if skip > 0:
            skip -= 1
            continue
        batch.append(row)
        if len(batch) == rows or lines.n_characters - began > _BATCH_TEXT:
            yield batch
            batch, began = [], lines.n_characters
    if batch:
        yield batch


def _numbers(texts: Iterable[str]) -> np.ndarray | None:
    """None if not everything looks like a number."""
    try:
        return np.fromiter(map(float, texts), float)
    except ValueError:
        return None


def _column(name: str, texts: Sequence[str], n_before: int, coding: Coding) -> np.ndarray:
    if name not in coding.levels:
        values = _numbers(texts)
        return coding.parsed(name, texts, count(n_before + 1)) if values is None else values
    place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    return coding.numbers(name, list(place), [place[text] for text in texts])


def _arrow_csv(
    path: File,
    delimiter: str,
    names: list[str],
    wanted: list[str],
    types: dict[str, Any],
    use_threads: bool,
) -> Iterator[Any]:
    """Batches by Arrow; ArrowInvalid wherever something is not plainly a number."""
    from pyarrow import csv as arrow_csv

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
                column_types=types,
                true_values=["true", "True", "TRUE"],
                false_values=["false", "False", "FALSE"],
                null_values=[],
            ),
        )
        with reader:
            yield from reader
