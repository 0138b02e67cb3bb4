"""Rows of a change feed, counted by kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class ReadRows:
    """Rows of a feed by `_change_type`."""

    insert: int = 0
    update_preimage: int = 0
    update_postimage: int = 0
    delete: int = 0

    @classmethod
    def of(cls, counted: Mapping[str, int]) -> ReadRows:
        """What was counted."""
        return cls(**{kind.name: int(counted[kind.name]) for kind in fields(cls)})

    @property
    def changes(self) -> int:
        """The changes that they come to where none has to be paired."""
        return self.insert + self.update_postimage + self.delete

    def __add__(self, other: ReadRows) -> ReadRows:
        """Both together."""
        return ReadRows(*(getattr(self, kind.name) + getattr(other, kind.name) for kind in fields(self)))
