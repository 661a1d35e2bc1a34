"""Lines of the optimizer for every equation, for those who ask."""

import numpy as np
import pytest

from bestk.datasets import make_dynamics
from bestk.sindy import OKRidge

DATA = make_dynamics("lorenz", duration=2.0, degree=2)


def lines_of(capsys, **options):
    optimizer = OKRidge(**{"k": [2, 3, 2], **options}).fit(DATA.X, DATA.derivatives)
    return optimizer, capsys.readouterr().out.splitlines()


def test_silent_unless_asked(capsys):
    assert lines_of(capsys)[1] == []
    assert OKRidge().get_params()["verbose"] is False


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_one_line_per_equation(capsys, n_jobs):
    optimizer, (heading, *lines) = lines_of(capsys, verbose=True, n_jobs=n_jobs)
    assert heading.split()[:3] == ["equation", "k", "terms"]
    assert sorted(line.split()[0] for line in lines) == ["0", "1", "2"]
    for line in lines:
        result = optimizer.results_[int(line.split()[0])]
        assert line.split()[1:3] == [str(result.k), str(len(result.support))]
        assert f"{result.objective:.6g}" in line
        assert str(result.status) in line


def test_one_line_per_size_where_terms_are_shared_out(capsys):
    _, (_, *lines) = lines_of(capsys, verbose=True, total_k=4, k=2)
    assert [line.split()[:2] for line in lines] == [
        [str(i), str(k)] for i in range(3) for k in range(3)
    ]


def test_one_line_where_constraints_tie_equations(capsys):
    constraint = np.zeros((1, 3 * DATA.X.shape[1]))
    constraint[0, :2] = 1.0
    _, (_, *lines) = lines_of(
        capsys, verbose=True, constraint_lhs=constraint, constraint_rhs=np.zeros(1)
    )
    assert len(lines) == 1
    assert lines[0].split()[0] == "all"


def test_the_answer_is_the_same(capsys):
    quiet, loud = lines_of(capsys)[0], lines_of(capsys, verbose=True)[0]
    np.testing.assert_array_equal(quiet.coef_, loud.coef_)
