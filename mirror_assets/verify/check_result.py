"""The result of a check: the one value that every check returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from mirror_assets.errors import NEXT


@dataclass(frozen=True)
class CheckResult:
    """The result of one check: its problems, one text per file or key, and figures to show as metadata.

    `note` is a remark on a passed check. With `is_warning`, the problems are warnings, not errors. `not_looked_at` says
    which check has to pass first: such a result has found nothing, and opens no gate either. `next_step` is for a
    failure that needs another step than the check's failures usually do. `pictures` are PNG files in base64, by name.
    """

    check: str
    problems: tuple[str, ...] = ()
    figures: dict[str, int | float | str] = field(default_factory=dict)
    note: str = ""
    is_warning: bool = False
    not_looked_at: str = ""
    next_step: str = ""
    pictures: dict[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether it has looked, and found no problem."""
        return not self.problems and not self.not_looked_at

    @property
    def advice(self) -> str:
        """The message, and what to do where the check knows it."""
        if not self.problems or not self.next_step:
            return self.message
        return f"{self.message.removesuffix('.')}.{NEXT}{self.next_step}"

    @property
    def message(self) -> str:
        """All problems in one text, or why it did not look; empty if it has passed."""
        return "; ".join(self.problems) or self.not_looked_at
