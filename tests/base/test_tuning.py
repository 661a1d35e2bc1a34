"""Constants that steer speed: each has a reason, and changes of them end."""

import ast
import inspect
from dataclasses import FrozenInstanceError

import pytest

from bestk.base import tuning as search_constants
from bestk.base.tuning import Tuning, tuned, tuning
from bestk.verification import limits as verifier_constants
from bestk.verification.limits import Limits, limited, limits


@pytest.fixture
def units_at_once():
    """Here constants are as they are."""


@pytest.mark.parametrize(
    ("module", "name"), [(search_constants, "Tuning"), (verifier_constants, "Limits")]
)
def test_every_constant_is_followed_by_its_reason(module, name):
    tree = ast.parse(inspect.getsource(module))
    (body,) = (
        node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name
    )
    found = 0
    for here, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(here, ast.AnnAssign):
            found += 1
            reason = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            assert reason, here.target.id
            assert len(after.value.value.split()) >= 3, here.target.id
    assert found > 20


@pytest.mark.parametrize(
    ("now", "change", "field", "kind"),
    [(tuning, tuned, "sweeps", Tuning), (limits, limited, "hits", Limits)],
)
def test_changes_nest_and_end_with_their_block(now, change, field, kind):
    before = now()
    assert before == kind()
    with change(**{field: 7}):
        assert getattr(now(), field) == 7
        with change(**{field: 9}):
            assert getattr(now(), field) == 9
        assert getattr(now(), field) == 7
    with pytest.raises(RuntimeError, match="inside"), change(**{field: 7}):
        raise RuntimeError("inside")
    assert now() is before
    with pytest.raises(FrozenInstanceError):
        setattr(now(), field, 7)


def test_unknown_constants_are_refused():
    with pytest.raises(TypeError, match="swepes"), tuned(swepes=3):
        pass
