"""The report of a run, as Markdown and JSON, in a form that a person can attach to a bug report."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from mirror_assets.features.fabric.accept.acceptance import ExerciseAnswer
from mirror_assets.redaction import redacted

_PACKAGES = ("mirror-assets", "deltalake", "pyarrow", "azure-storage-file-datalake", "microsoft-fabric-api")
_PRIVATE = (
    ("TOKEN", r"\bey[\w-]+\.[\w-]+\.[\w-]+|(?:sig|secret|password|token)=[^\s&]+"),
    ("ADDRESS", r"[\w.+-]+@[\w.-]+"),  # of a person, or of a container, before the rest of its URL
    ("URL", r"\b[a-z]+://[^\s'\"<>)]+"),
    ("HOST", r"\b[\w-]+(?:\.[\w-]+)*\.(?:(?:on)?microsoft\.com|windows\.net|microsoftonline\.com)\b"),
    ("GUID", r"\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b"),
)


@dataclass(frozen=True)
class AcceptReport:
    """The answers of a run, when it ran, and the longest wait of each step."""

    began: datetime
    ended: datetime
    limit_seconds: float
    answers: tuple[ExerciseAnswer, ...]

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write the report into an existing folder, as Markdown and as JSON, and return the paths."""
        base = folder / f"accept-{self.began:%Y%m%d-%H%M%S}"
        markdown, document = base.with_suffix(".md"), base.with_suffix(".json")
        markdown.write_text("\n".join(self._lines()), encoding="utf-8")
        facts = {**asdict(self), "versions": _versions(), "format": 1}
        document.write_text(json.dumps(facts, indent=1, ensure_ascii=False, default=str), encoding="utf-8")
        return markdown, document

    def shareable(self, names: Iterable[str]) -> AcceptReport:
        """Return the report without secrets, URLs, hosts, GUIDs, addresses of people, and these names."""
        patterns = [(r"NAME", rf"(?<!\w){re.escape(name)}(?!\w)") for name in names]

        def clean(text: str) -> str:
            text = redacted(text)
            for shown, pattern in (*patterns, *_PRIVATE):
                text = re.sub(pattern, shown, text, flags=re.IGNORECASE)
            return " ".join(text.split())

        return replace(self, answers=tuple(replace(one, seen=clean(one.seen)) for one in self.answers))

    def _lines(self) -> Iterator[str]:
        yield from ("# How Fabric applies landing files", "")
        yield from (f"- {name} {number}" for name, number in _versions().items())
        yield f"- from {self.began:%Y-%m-%d %H:%M:%S %Z} to {self.ended:%Y-%m-%d %H:%M:%S %Z}"
        yield f"- each step waits for {self.limit_seconds:.0f} s at most"
        yield from ("", "| exercise | verdict | seconds |", "| --- | --- | --- |")
        yield from (f"| {one.name} | {one.verdict.value} | {one.seconds:.1f} |" for one in self.answers)
        for one in self.answers:
            steps = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in one.steps.items())
            yield from ("", f"## {one.name}: {one.verdict.value}", "", f"- expected: {one.expected}")
            yield from (f"- seen: {one.seen}", f"- waits: {steps or 'none'}", f"- what follows: {one.follows}")
            if one.statements:
                yield from ("", "```sql", *one.statements, "```")
        yield ""


def _versions() -> dict[str, str]:
    return {**{name: version(name) for name in _PACKAGES}, "Python": platform.python_version()}
