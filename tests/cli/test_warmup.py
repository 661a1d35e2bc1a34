"""Compiling beforehand, and saying so when it happens."""

from types import SimpleNamespace

import pytest
from helpers.command_line import run
from numba.core import event
from rich.console import Console

import bestk
from bestk.base.compiling import Compilations, compilations
from bestk.selection.warming import Warmup
from bestk.show.progress import Counter, LiveDisplay, is_compiling

DONE = Warmup(n_compiled=7, seconds=12.34, cache="/somewhere")


def compiling(module="bestk.supports.scan"):
    """As if Numba compiled a function of a module."""
    dispatcher = SimpleNamespace(py_func=SimpleNamespace(__module__=module))
    return event.trigger_event("numba:compile", data={"dispatcher": dispatcher})


def test_a_second_warmup_finds_everything_compiled(force):
    bestk.warmup()
    done = bestk.warmup()
    assert done.n_compiled == 0
    assert "compiled before" in str(done)
    assert done.cache in str(done)
    X, y, _ = bestk.datasets.make_synthetic(100, 25, k=4, rho=0.9)
    before = compilations.count
    for units_from in (0, 40):
        force.units_from(units_from)
        for options in ({}, {"groups": [j // 3 for j in range(25)]}):
            bestk.solve(X, y, 3, alpha=1e-3, **options).certificate.verify(X, y)
    assert compilations.count == before


def test_what_was_compiled_is_said():
    assert str(DONE) == "compiled 7 inner loops in 12.3 s; they are kept in /somewhere"


@pytest.mark.parametrize("quiet", [False, True])
def test_the_command(monkeypatch, quiet):
    monkeypatch.setattr("bestk.selection.warming.warmup", lambda: DONE)
    outcome = run("warmup", *(["--quiet"] if quiet else []))
    assert outcome.exit_code == 0
    assert outcome.output.strip() == ("" if quiet else str(DONE))


def test_only_loops_of_this_package_are_counted():
    counted = Compilations()
    with event.install_listener("numba:compile", counted):
        assert not counted.is_running
        with compiling():
            assert counted.is_running
            with compiling("numba.np.arrayobj"):
                pass
            assert counted.count == 0
        with compiling("other.package"):
            assert not counted.is_running
    assert counted.count == 1
    assert not counted.is_running


@pytest.mark.parametrize("make", [LiveDisplay, lambda **more: Counter("reading", "rows", **more)])
def test_a_display_says_when_loops_are_compiled(make):
    console = Console(force_terminal=True, width=100)

    def shown():
        with console.capture() as capture:
            console.print(display._screen._render())
        return capture.get()

    display = make(console=console, delay=60.0)
    assert not is_compiling()
    assert "compiling" not in shown()
    with compiling():
        assert "compiling inner loops, once" in shown()
    assert "compiling" not in shown()
