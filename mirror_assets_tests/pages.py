"""The project's pages, their tables and the code spans in them, for tests that compare pages with the code."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README, DOCS = ROOT / "README.md", ROOT / "docs"
PAGES = (README, ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md")))

_CODE = re.compile(r"`([^`]+)`")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """Return the page's code blocks in a language."""
    return [text for found, text in _BLOCK.findall(page.read_text(encoding="utf-8")) if found == language]


def without_blocks(page: Path) -> str:
    """Return the page's text without its code blocks."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def codes(text: str) -> list[str]:
    """Return the code spans in a text."""
    return [str(code) for code in _CODE.findall(text)]


def table(page: Path, heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, without the table's own heading."""
    below = page.read_text(encoding="utf-8").partition(f"# {heading}\n")[2]
    section = re.split(r"^#+ ", below, maxsplit=1, flags=re.MULTILINE)[0]
    first = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert first, f"{page.name} has no table below {heading!r}"
    return [[cell.strip() for cell in line.strip("|").split(" |")] for line in first[0].splitlines()[2:]]
