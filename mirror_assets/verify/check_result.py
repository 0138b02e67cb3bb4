"""The result of a check: the one value that every check returns."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class CheckResult:
    """The result of one check: its problems, one text per file or key, and figures to show as metadata.

    `note` is a remark on a passed check. With `is_warning`, the problems are warnings, not errors.
    """

    check: str
    problems: tuple[str, ...] = ()
    figures: dict[str, int | float | str] = field(default_factory=dict)
    note: str = ""
    is_warning: bool = False

    @property
    def passed(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    @property
    def message(self) -> str:
        """All problems in one text, empty if there is none."""
        return "; ".join(self.problems)
