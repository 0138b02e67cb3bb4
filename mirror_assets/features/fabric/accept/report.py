"""The report of a run, as Markdown and JSON, in a form that a person can attach to a bug report."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from mirror_assets.features.fabric.accept.exercise import Answer
from mirror_assets.redaction import redacted

_PACKAGES = ("mirror-assets", "deltalake", "pyarrow", "azure-storage-file-datalake", "microsoft-fabric-api")
_URL = re.compile(r"\b[a-z]+://[^\s'\"<>]+", re.IGNORECASE)
_GUID = re.compile(r"\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b", re.IGNORECASE)
_ADDRESS = re.compile(r"[\w.+-]+@[\w.-]+")
_HOST = re.compile(r"\b[\w-]+(?:\.[\w-]+)*\.(?:fabric\.microsoft\.com|core\.windows\.net|onmicrosoft\.com)\b(?::\d+)?")
_TOKEN = re.compile(r"\b(?:ey[\w-]+\.[\w-]+\.[\w-]+|(?:sig|client_secret|access_token)=[^\s&]+)")
_SHAREABLE = ((_TOKEN, "TOKEN"), (_URL, "URL"), (_HOST, "HOST"), (_GUID, "GUID"), (_ADDRESS, "ADDRESS"))


@dataclass(frozen=True)
class Report:
    """The answers of a run, and when it ran. `private` are names that must not be in the report."""

    began: datetime
    ended: datetime
    limit_seconds: float
    answers: tuple[Answer, ...]
    private: Sequence[str] = ()

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write `accept-<time>.md` and `.json` into the folder, and return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        base = folder / f"accept-{self.began:%Y%m%d-%H%M%S}"
        markdown, document = base.with_suffix(".md"), base.with_suffix(".json")
        markdown.write_text(self.markdown(), encoding="utf-8")
        document.write_text(self.json(), encoding="utf-8")
        return markdown, document

    def json(self) -> str:
        """Return the report as JSON."""
        facts = {
            "format": 1,
            "versions": _versions(),
            "began": self.began.isoformat(timespec="seconds"),
            "ended": self.ended.isoformat(timespec="seconds"),
            "wait_seconds": self.limit_seconds,
            "exercises": [asdict(answer) for answer in self.answers],
        }
        return shareable(json.dumps(facts, indent=1, ensure_ascii=False), self.private)

    def markdown(self) -> str:
        """Return the report as Markdown."""
        lines = ["# How Fabric applies landing files", ""]
        lines += [f"- {name} {number}" for name, number in _versions().items()]
        lines += [f"- from {self.began:%Y-%m-%d %H:%M:%S %Z} to {self.ended:%Y-%m-%d %H:%M:%S %Z}"]
        lines += [f"- each step waited for {self.limit_seconds:.0f} s at most", ""]
        lines += ["| exercise | verdict | seconds |", "| --- | --- | --- |"]
        lines += [f"| {one.name} | {one.verdict.value} | {one.seconds:.1f} |" for one in self.answers]
        for one in self.answers:
            lines += ["", *_section(one)]
        return shareable("\n".join([*lines, ""]), self.private)


def _section(answer: Answer) -> Iterable[str]:
    yield f"## {answer.name}: {answer.verdict.value}"
    yield ""
    yield f"- question: {answer.question}"
    yield f"- expected: {answer.expected}"
    yield f"- seen: {answer.seen}"
    steps = "; ".join(f"{step.what}, {step.seconds:.1f} s" for step in answer.steps)
    yield f"- time: {answer.seconds:.1f} s{f' ({steps})' if steps else ''}"
    yield f"- what follows: {answer.follows}"
    if answer.statements:
        yield from ("", "To try at the SQL endpoint, while the tables exist (`--keep`):", "", "```sql")
        yield from answer.statements
        yield "```"


def shareable(text: str, private: Iterable[str] = ()) -> str:
    """Return the text without secrets, URLs, hosts, GUIDs, addresses of people, and these private names."""
    text = redacted(text)
    for name in filter(None, private):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "NAME", text)
    for pattern, shown in _SHAREABLE:
        text = pattern.sub(shown, text)
    return text


def _versions() -> dict[str, str]:
    return {**{name: version(name) for name in _PACKAGES}, "Python": platform.python_version()}
