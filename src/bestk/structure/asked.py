"""What users ask of a model besides its size, as they wrote it down, in one object."""

from dataclasses import dataclass, fields, replace
from typing import Any

from bestk.base.structure import Structure


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """Options of :func:`bestk.solve` that say which models are admissible.

    ``structure`` stands for groups, rules and constraints where these are known already.
    """

    include: Any = None
    exclude: Any = None
    free: Any = None
    groups: Any = None
    rules: Any = None
    constraints: Any = None
    structure: Structure | None = None

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> "Asked":
        """Take these options out of others."""
        return cls(**{name: options.pop(name) for name in cls.names() if name in options})

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(part.name for part in fields(cls))

    def as_options(self) -> dict[str, Any]:
        """The options that were given, by name."""
        given = {name: getattr(self, name) for name in self.names()}
        return {name: value for name, value in given.items() if value is not None}

    def with_structure(self, structure: Structure) -> "Asked":
        """The same, groups, rules and constraints read already."""
        return replace(self, groups=None, rules=None, constraints=None, structure=structure)

    @property
    def has_structure(self) -> bool:
        """Whether it takes a search over groups to answer."""
        parts = self.groups, self.rules, self.constraints, self.structure
        return any(part is not None for part in parts)
