"""The cluster that a command works with: processes started for it, or those of a scheduler."""

import logging
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from importlib.util import find_spec
from typing import Any

import typer

from bestk.base.words import counted
from bestk.cli.outcome import waiting

# Seconds in which a scheduler has to answer.
_PATIENCE = 10
# What is logged below this: errors come back to the command, a log would only repeat them.
_LOUD = logging.CRITICAL
_LOGGERS = ("distributed", "distributed.client", "tornado.application", "asyncio")


def client_of(
    workers: int | None, scheduler: str | None, quiet: bool
) -> AbstractContextManager[Any]:
    """A client for as long as the command needs it; None if neither option is given."""
    if workers is not None and scheduler is not None:
        raise typer.BadParameter("--workers and --scheduler exclude each other; use one of them")
    if workers is not None:
        return _started(workers, quiet)
    if scheduler is not None:
        return _connected(scheduler, quiet)
    return nullcontext(None)


@contextmanager
def _started(workers: int, quiet: bool) -> Iterator[Any]:
    """A client of new processes on this machine; they end with the block, whatever ends it."""
    distributed = _silent_dask()
    with ExitStack() as stack:
        with waiting(f"starting {counted(workers, 'worker')}", quiet), _deaf_to_ctrl_c():
            cluster = distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                silence_logs=_LOUD,
            )
            stack.callback(_close, cluster)
            client = distributed.Client(cluster, set_as_default=False)
            stack.callback(_close, client)
        _show_dashboard(client, quiet)
        yield client


@contextmanager
def _connected(address: str, quiet: bool) -> Iterator[Any]:
    """A client of a cluster that was there before, and stays."""
    distributed = _silent_dask()
    with ExitStack() as stack:
        try:
            distributed.comm.get_address_host_port(address)
        except ValueError as error:
            text = f"{address!r} is not an address such as tcp://host:8786: {error}"
            raise typer.BadParameter(text, param_hint="--scheduler") from None
        with waiting(f"connecting to {address}", quiet):
            try:
                client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
            except OSError as error:
                raise ConnectionError(
                    f"--scheduler: there is no answer from {address}; start one with "
                    "'dask scheduler', which prints its address"
                ) from error
            stack.callback(_close, client)
        _show_dashboard(client, quiet)
        if not client.nthreads():
            typer.echo(f"bestk: {address} has no workers yet; waiting for the first", err=True)
        yield client


def _silent_dask() -> Any:
    """The package that has clusters, and from now on nothing of its logs in the terminal."""
    from bestk.base.cluster.client import INSTALL

    try:
        import distributed
    except ImportError as error:
        raise ImportError(f"--workers and --scheduler need Dask: {INSTALL}") from error
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(_LOUD)
    return distributed


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """This thread hears of Ctrl-C after the block; threads and processes begun in it never do.

    A terminal tells workers, too, but it is for the command to end them.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # to start it later would undo what follows
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _close(opened: Any) -> None:
    """Close a client or a cluster; a second Ctrl-C has nothing more to say."""
    with suppress(KeyboardInterrupt), _deaf_to_ctrl_c():
        opened.close(timeout=_PATIENCE)


def _show_dashboard(client: Any, quiet: bool) -> None:
    """Where to watch the workers; without Bokeh there is nothing to see."""
    if quiet or find_spec("bokeh") is None:
        return
    with suppress(KeyError):  # a scheduler may have none
        typer.echo(f"dashboard: {client.dashboard_link}", err=True)
