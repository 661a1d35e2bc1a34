"""The live display: what it shows, where it stays silent, and what it costs."""

import subprocess
import sys
import types
from io import StringIO
from time import monotonic, perf_counter, sleep

import pytest
from rich.console import Console

import bestk
from bestk.results.progress import Silent, make_progress
from bestk.show.progress import Counter, LiveDisplay, Waiting, percent


def terminal(width=80):
    file = StringIO()
    options = {"force_terminal": True, "force_jupyter": False, "_environ": {"TERM": "xterm"}}
    return Console(file=file, width=width, height=25, **options), file


def snapshot(**changes):
    values = {
        "seconds": 12.5,
        "n_nodes": 25_000,
        "n_open": 1234,
        "objective": 2446.115742,
        "lower_bound": 2323.809955,
        "yy": 1e4,
    }
    return bestk.Snapshot(**values | changes)


def shown(display, width=80):
    """What a person sees at this moment, as lines of text."""
    console = Console(file=StringIO(), width=width, force_jupyter=False)
    console.print(display.render())
    return console.file.getvalue().rstrip("\n").split("\n")


def words(line):
    return " ".join(line.split())


@pytest.mark.parametrize("width", [80, 120])
def test_the_display_shows_the_state_of_the_search_in_two_lines(width):
    display = LiveDisplay(terminal(width)[0], delay=60)
    display.update(snapshot())
    heads, values = shown(display, width)
    assert words(heads) == "elapsed best found proven bound gap open nodes nodes/s"
    assert words(values).endswith(" s 2446.116 2323.81 5.00% 1,234 25,000 2,000")
    display.close()


def test_a_narrow_window_shows_the_gap_and_leaves_out_the_counts():
    display = LiveDisplay(terminal(50)[0], delay=60)
    display.update(snapshot())
    heads, _ = shown(display, 50)
    assert words(heads) == "elapsed best found proven bound gap"
    display.close()


def test_the_display_says_so_while_nothing_is_known():
    with LiveDisplay(terminal()[0], n_searches=3, delay=60) as display:
        assert "preparing" in shown(display)[1]
        display.update(snapshot())
        assert shown(display)[1].split()[0] == "1/3"
        display.close()
        assert shown(display)[1].split()[0] == "2/3"


def test_the_display_appears_and_cleans_up_after_itself():
    console, file = terminal()
    display = LiveDisplay(console, delay=0.0)
    display.update(snapshot())
    wait_for(lambda: "2446.116" in file.getvalue())
    display.close()
    written = file.getvalue()
    assert written.endswith("\x1b[2K")  # the last thing it does is to erase its lines
    assert "\x1b[?25h" in written  # and the cursor is back
    sleep(0.3)
    assert file.getvalue() == written


def test_it_can_be_opened_again():
    console, file = terminal()
    display = LiveDisplay(console, delay=0.0)
    display.update(snapshot())
    display.close()
    display.update(snapshot(objective=777.0))
    wait_for(lambda: "777" in file.getvalue())
    display.close()


def test_short_runs_show_nothing():
    console, file = terminal()
    display = LiveDisplay(console)
    for _ in range(10):
        display.update(snapshot())
    display.close()
    sleep(0.4)
    assert file.getvalue() == ""


def test_updates_are_cheap():
    console, _ = terminal()
    state = snapshot()
    with LiveDisplay(console, delay=0.0) as display:
        sleep(0.05)
        start = perf_counter()
        for _ in range(10_000):
            display.update(state)
        assert (perf_counter() - start) / 10_000 < 1e-4


def test_progress_true_is_silent_where_nobody_watches(capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    X, y, _ = bestk.datasets.make_synthetic(100, 30, k=3)
    with LiveDisplay(delay=0.0) as display, Counter("reading", "rows", delay=0.0) as counter:
        bestk.solve(X, y, 3, progress=display)
        counter.add(3)
        sleep(0.05)
    bestk.solve(X, y, 3, progress=True)
    assert capfd.readouterr() == ("", "")


def test_a_real_search_reports_to_the_display_and_closes_it():
    console, file = terminal()
    X, y, _ = bestk.datasets.make_synthetic(100, 60, k=8, rho=0.9)

    def wait_until_drawn(snapshot):
        deadline = monotonic() + 60.0
        while f"{snapshot.objective:.7g}" not in file.getvalue() and monotonic() < deadline:
            sleep(0.01)

    display = LiveDisplay(console, delay=0.0)
    result = bestk.solve(X, y, 8, progress=display, callback=wait_until_drawn)
    assert f"{result.objective:.7g}" in file.getvalue()
    assert file.getvalue().endswith("\x1b[2K")


def test_the_display_is_closed_when_the_callback_raises():
    class Closed(Silent):
        closed = 0

        def close(self):
            self.closed += 1

    def fail(snapshot):
        raise RuntimeError("stop")

    watcher = Closed()
    X, y, _ = bestk.datasets.make_synthetic(100, 30, k=3)
    with pytest.raises(RuntimeError, match="stop"):
        bestk.solve(X, y, 3, progress=watcher, callback=fail)
    assert watcher.closed == 1


def test_counter_counts_rows_and_searches():
    console, file = terminal()
    with Counter("fitting", "fits", total=1200, console=console, delay=0.0) as counter:
        counter.update(snapshot())
        counter.close()
        counter.add(1000)
        assert shown(counter)[0].startswith("fitting: 1,001 of 1,200 fits  0.")
        wait_for(lambda: "1,001 of 1,200" in file.getvalue())
    assert file.getvalue().endswith("\x1b[2K")


def test_waiting_shows_the_seconds():
    console, file = terminal()
    with Waiting("starting 4 workers", console=console, delay=0.0) as line:
        assert shown(line)[0].startswith("starting 4 workers  0.")
        wait_for(lambda: "starting 4 workers" in file.getvalue())
    assert file.getvalue().endswith("\x1b[2K")


def test_notebooks_get_a_cell_that_is_rewritten_and_cleared(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    pages = []

    class Handle:
        def update(self, page):
            pages.append(page)

    def display(page, display_id):
        pages.append(page)
        return Handle()

    module = types.ModuleType("IPython.display")
    module.HTML, module.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    live = LiveDisplay(Console(file=StringIO(), force_jupyter=True), delay=0.0)
    live.update(snapshot())
    wait_for(lambda: len(pages) >= 2)
    live.close()
    assert "2446.116" in pages[0]
    assert "monospace" in pages[0]  # whatever font the page has for <pre>
    assert "\x1b" not in "".join(pages)
    assert pages[-1] == ""


def test_make_progress_takes_what_the_documentation_says():
    watcher = Silent()
    assert make_progress(watcher) is watcher
    assert isinstance(make_progress(None), Silent)
    assert isinstance(make_progress(False), Silent)
    with pytest.raises(TypeError, match="update"):
        make_progress("yes")


@pytest.mark.parametrize(
    ("gap", "text"),
    [
        (0.0, "0%"),
        (1.0, "100.00%"),
        (0.25, "25.00%"),
        (0.00014, "0.02%"),
        (9.99e-5, "0.01%"),
        (1e-4, "0.01%"),
        (3.11e-6, "3.2e-6"),
        (float("inf"), "inf%"),
    ],
)
def test_gaps_are_rounded_up(gap, text):
    assert percent(gap) == text


@pytest.mark.skipif(sys.platform != "linux", reason="uses script(1)")
def test_on_a_real_terminal_the_display_goes_to_standard_error(tmp_path):
    code = (
        "import bestk, sys, time; X, y, _ = bestk.datasets.make_synthetic(100, 60, k=8, rho=0.9);"
        "slow = lambda snapshot: time.sleep(0.5);"
        "result = bestk.solve(X, y, 8, time_limit=1, progress=True, callback=slow);"
        "sys.stdout.write(str(result.support))"
    )
    command = f"{sys.executable} -c '{code}' > {tmp_path / 'out'}"
    typescript = subprocess.run(
        ["script", "-qec", command, "/dev/null"], capture_output=True, text=True, check=True
    )
    assert "proven bound" in typescript.stdout
    assert (tmp_path / "out").read_text().startswith("[")


def wait_for(condition, seconds=5.0):
    start = perf_counter()
    while not condition():
        assert perf_counter() - start < seconds, "waited in vain"
        sleep(0.01)
