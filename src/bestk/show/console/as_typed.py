"""Messages of the library in the words of the command line: options instead of arguments.

A message is written once, for Python. Here is what a user of the command typed instead.
"""

import re
import shlex
from ast import literal_eval

# In this order: what comes first may be part of what comes later.
_INSTEAD = (
    (r"rules\[\d+\] \(hierarchy\)", "--hierarchy"),
    (r"rules\[\d+\] \(\w+\)", "--rule"),
    (r"^(?=(?:at_most|at_least|exclusive|implies|max_correlation): )", "--rule: "),
    (r"; give parents=\{child: \[parents\]\}", "; write rules, such as --rule 'ab needs a, b'"),
    (r"constraints\[\d+\]", "--constraint"),
    (r"^groups has (?=a group)", "--group: there is "),
    (
        r'bounds="auto" (.*); leave bounds out, or give a pair \(lower, upper\)',
        r"--auto-bounds \1; leave it out, or use --lower and --upper",
    ),
    (r"include names", "--include names"),
    (r"both (include|free) and exclude", r"both --\1 and --exclude"),
    (r"device='(\w+(?::\d+)?)'", r"--device \1"),
    (r"^(device|validation|alpha) (?=must|cannot)", r"--\1 "),
    (r"leave (device|client|bound) out", r"leave --\1 out"),
    (r"use within or below", "use --within or --below"),
    (r"n_folds", "--folds"),
    (r"n_threads", "--threads"),
    (r"sample_weight|the weight of the batches", "--weight"),
    (r"give bounds or a larger alpha", "use a larger ridge penalty, or bounds on the coefficients"),
    (r"solve\(checkpoint=\.\.\.\)", "bestk fit --checkpoint"),
    (r"max_bytes= or ", ""),
    (r"\blower degree\b", "lower --degree"),
    (r"^x has", "the trajectory has"),
    (r"^x\[(\d+)\] has", r"trajectory \1 (counted from 0) has"),
    (r"max_seconds= \(bestk verify --max-seconds\)", "--max-seconds"),
    (r"allow_long=True \(--allow-long\)", "--allow-long"),
    (r"exact=True \(--exact\)", "--exact"),
    (r"^exact=True", "--exact"),
    (r"another validation share, or differentiation=.*", "or another share for --validation"),
    (r"^(gap_tol|time_limit|node_limit|n_best|max_models|max_seconds|total_k)\b", r"--\1"),
    (r"\b(raise|loosen|Raise|leave|of) (gap_tol|time_limit|node_limit)\b", r"\1 --\2"),
    (r"--(\w+)_(\w+)\b", r"--\1-\2"),
)

_ARGUMENTS = "target|weight|features|drop|numeric|text|missing|time|states"
_GIVEN = re.compile(rf"\b({_ARGUMENTS})=\[?('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\]?")
_UNKNOWN = re.compile(rf"(?<![-\w])({_ARGUMENTS})(?=: there is no column )")


def of_table_as_typed(text: str) -> str:
    """A message about a table, which also has names of files: options instead of arguments."""
    text = _UNKNOWN.sub(r"--\1", text)
    return _GIVEN.sub(lambda m: f"--{m[1]} {shlex.quote(literal_eval(m[2]))}", text)


def as_typed(text: str) -> str:
    """A message with options such as --gap-tol in place of arguments such as gap_tol.

    What stands in quotes are names of columns or files, and stays.
    """
    names: list[str] = []

    def hidden(name: re.Match[str]) -> str:
        names.append(name[0])
        return f"\0{len(names) - 1}\0"

    text = re.sub(r"(?<!=)'[^']*'", hidden, text)
    for written, typed in _INSTEAD:
        text = re.sub(written, typed, text)
    if text.startswith("no model satisfies: "):
        text = re.sub(r"(?<=[:,] )(?=(?:include|exclude|free) )", "--", text)
    return re.sub("\0(\\d+)\0", lambda place: names[int(place[1])], text)
