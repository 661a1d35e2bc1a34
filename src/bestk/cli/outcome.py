"""What comes out of a command: a live display, files, messages and an exit code."""

import functools
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path as File
from time import monotonic
from typing import TYPE_CHECKING, Any

import typer

# Slow to import and not needed for --help.
if TYPE_CHECKING:
    from bestk.results.result import Result
    from bestk.rivals.models import NearOptimal

_LONGEST = 4000
"""Characters of a message: names in a stranger's file may have very many."""

_ONE_PRESS = 2.0
"""Seconds in which Ctrl-C says the same thing again: what there is, is about to be shown."""

BAD_INPUT, GAP_LEFT, NOT_VERIFIED, INTERRUPTED = 1, 3, 4, 130


def helpful(command: Callable[..., int]) -> Callable[..., None]:
    """Turn what a command returns or raises into an exit code, and errors into messages."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            with _plain_warnings(), _ctrl_c_heard_once():
                code = command(*args, **options)
        except _plain_errors() as error:
            text = _words(error)
            text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
            say(f"bestk: {text}", fg="red")
            code = BAD_INPUT
        except KeyboardInterrupt:
            typer.secho("bestk: interrupted before there was a result", err=True, fg="red")
            code = INTERRUPTED
        raise typer.Exit(code)

    return run


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings as plain sentences, without lines of the program."""
    from bestk.show.console import as_typed

    def show(message: Any, *rest: Any, **more: Any) -> None:
        say(f"bestk: {as_typed(str(message))}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextmanager
def _ctrl_c_heard_once() -> Iterator[None]:
    """Who presses Ctrl-C twice wants the search to end, not to lose what it has found."""
    handler = signal.getsignal(signal.SIGINT)
    is_usual = handler is signal.default_int_handler
    if not is_usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = -_ONE_PRESS

    def pressed(number: int, frame: Any) -> None:
        nonlocal heard
        if monotonic() - heard >= _ONE_PRESS:
            heard = monotonic()
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, pressed)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _plain_errors() -> tuple[type[Exception], ...]:
    """Errors whose message is all that there is to say."""
    from bestk.base.cluster.calls import OtherVersion

    return ValueError, OSError, ImportError, MemoryError, OtherVersion


def _words(error: Exception) -> str:
    """What is wrong, with options as they are typed."""
    from bestk.readers.files import DataError
    from bestk.show.console import as_typed, of_table_as_typed

    if isinstance(error, DataError):
        return of_table_as_typed(str(error))
    if isinstance(error, MemoryError) and str(error).partition(" ")[0] in ("", "Unable"):
        needed = f" ({error})" if str(error) else ""  # as Python and NumPy say it
        return f"there is too little memory{needed}; leave columns out, or ask for less at once"
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        if isinstance(error, FileNotFoundError):
            return f"there is no file {error.filename}"
        return f"cannot open {error.filename}: {error.strerror}"
    return as_typed(str(error))


def require_places(**paths: File | None) -> None:
    """Files can be written where options such as ``report=`` say, as far as can be told before."""
    from bestk.base.validation import require_writable

    for option, path in paths.items():
        if path is not None:
            require_writable(f"--{option}", path)


def display(quiet: bool, n_searches: int = 1) -> AbstractContextManager[Any]:
    from bestk.show.progress import LiveDisplay

    return nullcontext(None) if quiet else LiveDisplay(n_searches=n_searches)


def waiting(text: str, quiet: bool) -> AbstractContextManager[Any]:
    from bestk.show.progress import Waiting

    return nullcontext() if quiet else Waiting(text)


def exit_code(results: "Iterable[Result]") -> int:
    from bestk.results.status import Status

    results = list(results)
    if any(result.status is Status.INTERRUPTED for result in results):
        return INTERRUPTED
    return 0 if all(result.is_closed for result in results) else GAP_LEFT


def list_exit_code(found: "NearOptimal") -> int:
    """An incomplete list is like an unproven model."""
    from bestk.results.status import Status

    if Status.INTERRUPTED in (found.status, found.best.status):
        return INTERRUPTED
    return 0 if found.complete and (found.within is None or found.best.is_closed) else GAP_LEFT


def say(text: str, **style: Any) -> None:
    """To standard error: standard output is for results."""
    from bestk.base.words import printable

    typer.secho(printable(text, keep="\n"), err=True, **style)


def write_files(*wanted: tuple[File | None, str, Callable[[File], Any]]) -> None:
    """(where, what, how) of each file; one that cannot be written does not keep back the others."""
    failures = []
    for path, what, write in wanted:
        if path is None:
            continue
        try:
            write(path)
            say(f"{what} written to {path}")
        except OSError as error:
            failures.append(f"{what} not written to {path}: {error.strerror or error}")
    if failures:
        raise OSError("; ".join(failures))
