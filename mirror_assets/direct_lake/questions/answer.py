"""The one form of all answers: a row of the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Figure = int | float | str


@dataclass(frozen=True)
class Answer:
    """A row of the report: what was asked, about which column, version or key, and what there is to say.

    `advice` is what to do about it; empty when nothing is to be done.
    """

    question: str
    subject: str
    found: str
    advice: str = ""
    figures: Mapping[str, Figure] = field(default_factory=dict)
