"""What a check found: the one value that every audit returns."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class CheckResult:
    """The result of one check: what is wrong, by file or key, and the figures to show with it.

    `note` is what there is to say although nothing is wrong. `is_warning`: what is wrong is no error yet.
    """

    check: str
    problems: tuple[str, ...] = ()
    figures: dict[str, int | float | str] = field(default_factory=dict)
    note: str = ""
    is_warning: bool = False

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def message(self) -> str:
        """Everything that is wrong, in one text; empty when nothing is."""
        return "; ".join(self.problems)
