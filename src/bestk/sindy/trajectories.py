"""Trajectories as users have them: arrays or data frames, times or a step, one or several."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bestk.base.validation import (
    as_matrix,
    as_real,
    counted,
    names_of,
    require_finite,
    require_number,
)

# Times are even if no step differs from their mean by more than this share of it.
_EVEN = 1e-3


@dataclass(frozen=True, kw_only=True, eq=False)
class Trajectories:
    """States x (n, d) at times t (n,), one pair of arrays per trajectory.

    Attributes
    ----------
    x, t : lists of arrays
    steps : list of float, or None
        The steps between rows, where they are even in all trajectories.
    names : tuple of str
        One per state.
    u : list of arrays, or None
        Control inputs (n, c) at the same times, which are known and have no equations.
    control_names : tuple of str
        One per control input.
    are_many : bool
        Whether the user gave a list.
    """

    x: list[np.ndarray]
    t: list[np.ndarray]
    steps: list[float] | None
    names: tuple[str, ...]
    are_many: bool
    u: list[np.ndarray] | None = None
    control_names: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, x: Any, t: Any, names: Any = None, u: Any = None, control_names: Any = None
    ) -> "Trajectories":
        """Checked copies of the data; errors name the argument and say what to do."""
        are_many = isinstance(x, list | tuple) and _are_trajectories(x)
        if isinstance(x, np.ndarray) and x.ndim == 3:
            raise ValueError("x must have two dimensions; for several trajectories pass list(x)")
        parts = list(x) if are_many else [x]
        if not parts:
            raise ValueError("x is an empty list; pass at least one trajectory")
        labels = [f"x[{i}]" for i in range(len(parts))] if are_many else ["x"]
        states = [_states(label, part) for label, part in zip(labels, parts, strict=True)]
        d = states[0].shape[1]
        for label, state in zip(labels, states, strict=True):
            if state.shape[1] != d:
                raise ValueError(
                    f"{label} has {counted(state.shape[1], 'state')}, but x[0] has {d}; give all "
                    "trajectories the same columns"
                )
        times = _times(t, states, are_many)
        controls = None if u is None else _controls(u, states, are_many)
        called = _control_names(control_names, u, controls)
        state_names = _names(names, parts, d)
        both = sorted(set(state_names) & set(called))
        if both:
            raise ValueError(f"{both[0]!r} names a state and a control input; rename one of them")
        steps = [step for step in map(_even_step, times) if step is not None]
        return cls(
            x=states,
            t=times,
            steps=steps if len(steps) == len(times) else None,
            names=state_names,
            are_many=are_many,
            u=controls,
            control_names=called,
        )

    def split(self, validation: float) -> tuple["Trajectories", "Trajectories"]:
        """The first part of each trajectory, and its last rows, of which `validation` is the share.

        Nothing is shuffled: neighbouring rows share their noise after smoothing.
        """
        sizes = [round(len(x) * (1.0 - validation)) for x in self.x]
        return (
            self._rows([slice(0, size) for size in sizes]),
            self._rows([slice(size, None) for size in sizes]),
        )

    def _rows(self, rows: list[slice]) -> "Trajectories":
        return replace(
            self,
            x=[x[part] for x, part in zip(self.x, rows, strict=True)],
            t=[t[part] for t, part in zip(self.t, rows, strict=True)],
            u=self.u and [u[part] for u, part in zip(self.u, rows, strict=True)],
        )

    @property
    def inputs(self) -> list[str]:
        """Names of all that terms are made of: states, then control inputs."""
        return [*self.names, *self.control_names]

    @property
    def given(self) -> dict[str, Any]:
        """What PySINDy's fit takes besides x."""
        more = {} if self.u is None else {"u": self.u}
        return {"t": self.clock, "feature_names": self.inputs, **more}

    def control(self, i: int) -> Callable[[float], np.ndarray] | None:
        """The control inputs of a trajectory at any time: linear between rows, constant outside."""
        if self.u is None:
            return None
        return _between(self.t[i], self.u[i])

    @property
    def clock(self) -> list:
        """What PySINDy takes as t: steps where it can, since that is faster, or times."""
        return self.t if self.steps is None else self.steps

    def in_shape(self, parts: list) -> Any:
        """One entry per trajectory, in the form the user gave: a list, or the only entry."""
        return parts if self.are_many else parts[0]


def new_control(u: Any, t: np.ndarray, n_inputs: int) -> Callable[[float], np.ndarray] | None:
    """Control inputs of a new experiment at any time, from a function or from rows at times t."""
    if n_inputs == 0 and u is None:
        return None
    if u is None or n_inputs == 0:
        raise ValueError(
            "the equations have no control inputs; leave u out"
            if n_inputs == 0
            else f"the equations have {counted(n_inputs, 'control input')}; pass u, a function of "
            "time or rows at times t"
        )
    if callable(u):
        control = lambda time: np.asarray(u(time), dtype=np.float64).reshape(-1)  # noqa: E731
        n_given = len(control(t[0]))
    else:
        rows = _states("u", np.asarray(u)[:, None] if np.ndim(u) == 1 else u)
        if len(rows) != len(t):
            raise ValueError(
                f"u has {counted(len(rows), 'row')} for {counted(len(t), 'time')}; pass one row "
                "per time"
            )
        control, n_given = _between(t, rows), rows.shape[1]
    if n_given != n_inputs:
        raise ValueError(
            f"u gives {counted(n_given, 'control input')}, but the equations have {n_inputs}; pass "
            "one number for each of them"
        )
    return control


def _between(t: np.ndarray, u: np.ndarray) -> Callable[[float], np.ndarray]:
    return lambda time: np.array([np.interp(time, t, column) for column in u.T])


def _are_trajectories(parts: Sequence[Any]) -> bool:
    """Arrays of different shapes are not rows of one array: if one is wrong, it is named."""
    shapes = {np.shape(part) for part in parts}
    are_arrays = all(hasattr(part, "shape") for part in parts)
    return all(len(shape) == 2 for shape in shapes) or (are_arrays and len(shapes) > 1)


def _states(label: str, x: Any) -> np.ndarray:
    states = np.array(as_matrix(label, x), dtype=np.float64)
    require_finite(label, states)
    if states.shape[1] == 0:
        raise ValueError(f"{label} has no columns; it needs one per state")
    return states


def _controls(u: Any, states: list[np.ndarray], are_many: bool) -> list[np.ndarray]:
    if are_many and not isinstance(u, Sequence | np.ndarray):
        raise TypeError("u must be a list of control inputs, one entry per trajectory, as x is")
    parts = list(u) if are_many else [u]
    if len(parts) != len(states):
        raise ValueError(_one_each("u", len(parts), len(states)))
    labels = [f"u[{i}]" for i in range(len(parts))] if are_many else ["u"]
    controls = []
    for label, part, x in zip(labels, parts, states, strict=True):
        is_vector = np.ndim(part) == 1
        control = _states(label, np.asarray(part)[:, None] if is_vector else part)
        if len(control) != len(x):
            raise ValueError(
                f"{label} has {counted(len(control), 'row')}, but the trajectory has {len(x):,}; "
                "pass the control inputs at the times of its rows"
            )
        controls.append(control)
    if len({control.shape[1] for control in controls}) > 1:
        raise ValueError(
            "u has different numbers of columns in different trajectories; give all the same"
        )
    return controls


def _control_names(names: Any, u: Any, controls: list[np.ndarray] | None) -> tuple[str, ...]:
    """Names that were given, those of a data frame, or u0, u1, ..."""
    if controls is None:
        if names is not None:
            raise ValueError(
                "control_names are given, but no control inputs; pass these as u, or leave "
                "control_names out"
            )
        return ()
    count = controls[0].shape[1]
    known = names_of(u[0] if isinstance(u, list | tuple) else u)
    if names is None:
        names = known or [f"u{i}" for i in range(count)]
    return _distinct("control_names", names, count, "control input")


def _times(t: Any, states: list[np.ndarray], are_many: bool) -> list[np.ndarray]:
    if are_many and isinstance(t, list | tuple):
        if len(t) != len(states):
            raise ValueError(_one_each("t", len(t), len(states)))
        labels = [f"t[{i}]" for i in range(len(t))]
        return [_times_of(*each) for each in zip(labels, t, states, strict=True)]
    return [_times_of("t", t, x) for x in states]


def _times_of(label: str, t: Any, x: np.ndarray) -> np.ndarray:
    """Times of one trajectory from times or a step."""
    if t is None:
        raise TypeError(f"{label} is missing; pass the times of the rows or the step between them")
    if np.ndim(t) == 0:
        step = require_number(label, t, least=-np.inf)
        if step <= 0.0:
            raise ValueError(f"{label} is the step between rows; it must be above 0, got {step:g}")
        return step * np.arange(len(x))
    times = np.array(as_real(label, t), dtype=np.float64)
    if times.shape != (len(x),):
        raise ValueError(
            f"{label} has shape {times.shape}, but the trajectory has {counted(len(x), 'row')}; "
            "pass one time per row"
        )
    require_finite(label, times)
    late = np.flatnonzero(np.diff(times) <= 0)
    if len(late):
        i = int(late[0])
        raise ValueError(
            f"{label} must increase, but {label}[{i + 1}] = {times[i + 1]:g} comes after "
            f"{times[i]:g}; sort the rows by time and drop repeated ones, and pass separate "
            "trajectories as a list"
        )
    return times


def _names(names: Any, parts: Sequence[Any], d: int) -> tuple[str, ...]:
    """Names that were given, those of the data frames, or x0, x1, ..."""
    if names is None:
        known = {names_of(part) for part in parts}
        if len(known) > 1:
            raise ValueError("x has trajectories with different column names; give all the same")
        names = known.pop() or [f"x{i}" for i in range(d)]
    return _distinct("names", names, d, "state")


def _distinct(word: str, names: Any, count: int, of: str) -> tuple[str, ...]:
    names = (names,) if isinstance(names, str) else names
    known = tuple(names) if isinstance(names, Iterable) else ()
    if len(known) != count or not all(isinstance(name, str) for name in known):
        raise ValueError(
            f"{word} must be {counted(count, 'string')}, one per {of}, got {known or names!r}"
        )
    if len(set(known)) < count:
        raise ValueError(f"{word} must be distinct, got {known}; rename those that are equal")
    return tuple(map(str, known))


def _one_each(word: str, given: int, wanted: int) -> str:
    return (
        f"{word} has {counted(given, 'entry', 'entries')} for "
        f"{counted(wanted, 'trajectory', 'trajectories')}; pass one per trajectory"
    )


def _even_step(t: np.ndarray) -> float | None:
    if len(t) < 2:
        return None
    step = (t[-1] - t[0]) / (len(t) - 1)
    return float(step) if np.abs(np.diff(t) - step).max() <= _EVEN * step else None
