"""The result of a check: the one value that every check returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from mirror_assets.errors import NEXT


@dataclass(frozen=True)
class CheckResult:
    """The result of one check: its problems, one text per file or key, and numbers to show as metadata.

    `note` is a remark on a passed check, and `warning` one that a person should read. With `is_warning`, the problems
    are warnings, not errors. `skipped` says why the check did not run: such a result has no problems, and has not
    passed. `next_step` replaces the check's default. `unproved` is the number of commits that it could not judge.
    """

    check: str
    problems: tuple[str, ...] = ()
    metadata: dict[str, int | float | str] = field(default_factory=dict)
    note: str = ""
    is_warning: bool = False
    skipped: str = ""
    next_step: str = ""
    warning: str = ""
    unproved: int = 0

    @property
    def passed(self) -> bool:
        """Whether the check ran and found no problem."""
        return not self.problems and not self.skipped

    @property
    def is_refusal(self) -> bool:
        """Whether its problems are errors: a slice with them does not land."""
        return bool(self.problems) and not self.is_warning

    @property
    def advice(self) -> str:
        """The message, and the next step if the result has one."""
        if not self.problems or not self.next_step:
            return self.message
        return f"{self.message.removesuffix('.')}.{NEXT}{self.next_step}"

    @property
    def message(self) -> str:
        """All problems in one text, or why the check did not run; empty if it passed."""
        return "; ".join(self.problems) or self.skipped
