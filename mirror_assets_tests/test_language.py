"""Pages, docstrings, messages and help texts are plain technical English, without the words of a list."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror_assets_tests.pages import DOCS, README, ROOT, without_blocks

_PACKAGE = ROOT / "mirror_assets"
# What not to write, and what to write instead.
_AVOIDED = {
    r"tells?|told|telling": "report, alert, log, show",
    r"nobody|somebody|whoever": "no one, someone; better: the role",
    r"anew": "again",
    r"seldom": "rarely",
    r"for ever": "permanently, indefinitely",
    r"mend(?:s|ed|ing)?": "fix",
    r"there (?:is|are) no [\w ]{1,40} that": "no X",
    r"so many|so long(?! as)": "this many, this long; better: the name of the setting",
    r"look(?:s|ed|ing)? (?:at|into|again)|(?:a|each|every) looks?": "check, scan, poll, inspect",
    r"(?:is|are|was|were) (?:away|gone)": "is unreachable, was deleted",
    r"(?:goes|go|went|going) on": "continue",
    r"stays? so": "persist",
    r"by (?:itself|themselves)": "automatically",
    r"takes? back|taken back": "resolve, clear",
    r"lies?|lay|lain": "is, is stored",
    r"apart": "separate",
    r"news": "change, new result",
    r"rooms?|doors?|houses?": "package, module, entry point",
    r"runs? that stays?": "resident run",
    r"wants": "requires",
    r"too(?<=\w, too)(?=[.,;:)]|$)": "also",
}
_PATTERN = re.compile(rf"(?<![\w-])(?:{'|'.join(_AVOIDED)})(?![\w-])", re.IGNORECASE)
_CODE_SPAN = re.compile(r"(`+).+?\1", re.DOTALL)


def _avoided(text: str) -> list[str]:
    """Return the listed phrases in a text, without its code spans; a line break is a blank."""
    return _PATTERN.findall(re.sub(r"\s+", " ", _CODE_SPAN.sub("_", text)))


def _strings(file: Path) -> Iterator[tuple[int, str]]:
    """Yield every string of a module that has a blank, docstrings included, with its line."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


@pytest.mark.parametrize("page", [README, *sorted(DOCS.rglob("*.md"))], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_no_word_of_the_list(page: Path) -> None:
    assert _avoided(without_blocks(page)) == []


@pytest.mark.parametrize("name", sorted({file.stem for file in _PACKAGE.iterdir()} - {"__init__", "__pycache__", "py"}))
def test_strings_of_a_package_have_no_word_of_the_list(name: str) -> None:
    files = [file for file in (_PACKAGE / f"{name}.py", *(_PACKAGE / name).rglob("*.py")) if file.exists()]
    strings = [(file, line, text) for file in files for line, text in _strings(file)]
    assert [f"{file.relative_to(ROOT)}:{line}: {hit}" for file, line, text in strings for hit in _avoided(text)] == []


def test_a_listed_word_is_found() -> None:
    text = "Nobody is told\nanew; it is so long, too. A word in `told` and a headroom are fine, so long as both are."
    assert _avoided(text) == ["Nobody", "told", "anew", "so long", "too"]
