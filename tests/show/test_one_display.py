"""Many searches share one live display, whoever asks for them."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

import bestk
from bestk.show import progress


@pytest.fixture
def displays(monkeypatch):
    """Every live display that is made, with all that happens to it."""
    made = []

    class Watched(progress.LiveDisplay):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            self.n_closed, self.has_ended = 0, False
            made.append(self)

        def close(self):
            self.n_closed += 1
            super().close()

        def __exit__(self, *exc):
            self.has_ended = True
            super().__exit__(*exc)

    monkeypatch.setattr(progress, "LiveDisplay", Watched)
    return made


GROUPS = np.repeat(np.arange(5), 2)


@pytest.mark.parametrize(
    ("ask", "n_searches"),
    [
        (lambda X, y: bestk.solve_path(X, y, ks=range(1, 5), progress=True), 4),
        (lambda X, y: bestk.solve_path(X, y, ks=[1, 2], groups=GROUPS, progress=True), 2),
        (lambda X, y: bestk.Problem.from_data(X, y).solve_grid([1, 2], [0, 1], progress=True), 4),
        (
            lambda X, y: bestk.Problem.from_data(X, y).solve_grid(
                [1, 2], [0, 1], groups=GROUPS, progress=True
            ),
            4,
        ),
        (lambda X, y: bestk.stability(X, y, 2, n_resamples=5, progress=True), 6),
        (lambda X, y: bestk.SparseRidge(2, verbose=True).fit(X, np.c_[y, -y, y]), 3),
        (
            lambda X, y: bestk.SparseRidge(2, verbose=True, n_jobs=2).fit(X, np.c_[y, -y, y]),
            3,
        ),
    ],
)
def test_one_display_counts_all_searches(displays, ask, n_searches):
    ask(*load_diabetes(return_X_y=True))
    (display,) = displays
    assert display.n_closed == n_searches
    assert display.has_ended


def test_a_cross_validation_and_the_last_fit_have_one_each(displays):
    bestk.SparseRidgeCV(ks=[1, 2], alphas=[0, 1], cv=3, verbose=True).fit(
        *load_diabetes(return_X_y=True)
    )
    assert [display.n_closed for display in displays] == [12, 1]


@pytest.mark.parametrize("options", [{}, {"groups": GROUPS}])
def test_lists_take_many_searches_and_one_display(displays, options):
    X, y = load_diabetes(return_X_y=True)
    bestk.near_optimal(X, y, 3, within=0.2, progress=True, **options)
    (display,) = displays
    assert display.has_ended


def test_a_display_ends_with_an_error(displays):
    def fail(snapshot):
        raise RuntimeError("stop")

    X, y, _ = bestk.datasets.make_synthetic(100, 60, k=8, rho=0.9)
    with pytest.raises(RuntimeError, match="stop"):
        bestk.solve_path(X, y, ks=[7, 8], progress=True, callback=fail)
    assert displays[0].has_ended


def test_watchers_of_users_are_passed_on(displays):
    class Watcher:
        n_closed = 0

        def update(self, snapshot):
            pass

        def close(self):
            self.n_closed += 1

    watcher = Watcher()
    X, y = load_diabetes(return_X_y=True)
    bestk.solve_path(X, y, ks=[1, 2, 3], progress=watcher)
    assert watcher.n_closed == 3
    assert not displays
