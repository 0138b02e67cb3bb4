"""The project's pages, their tables and the code spans in them, for tests that compare pages with the code."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README, DOCS = ROOT / "README.md", ROOT / "docs"
PAGES = (README, ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md")))

_CODE = re.compile(r"`([^`]+)`")
_SECTION = re.compile(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r'<a id="([^"]+)"></a>')
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str | Path, language: str) -> list[str]:
    """Return the code blocks of a page or a text in a language."""
    text = text.read_text(encoding="utf-8") if isinstance(text, Path) else text
    return [block for found, block in _BLOCK.findall(text) if found == language]


def sections(page: Path) -> dict[str, str]:
    """Return the page's sections on codes or checks: the text below each heading that is a name in code."""
    found = _SECTION.findall(page.read_text(encoding="utf-8"))
    assert len(found) == len(dict(found)), "a name has two sections"
    return dict(found)


def anchors(page: Path) -> set[str]:
    """Return the names that code hosts give to a page's headings, and those that the page gives itself."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", _BLOCK.sub("", text), re.MULTILINE)
    named = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings] + _NAMED.findall(text)
    assert len(named) == len(set(named)), "a name is given twice"
    return set(named)


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
