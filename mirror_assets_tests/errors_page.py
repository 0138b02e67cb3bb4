"""docs/errors.md, written from the tables of errors: `python -m mirror_assets_tests.errors_page` writes the page."""

from __future__ import annotations

import importlib
import pkgutil
import re
import textwrap
from types import ModuleType

import mirror_assets
from mirror_assets.errors import Code, ErrorCode, ErrorRow, MirrorError
from mirror_assets_tests.pages import DOCS

PAGE = DOCS / "errors.md"
_FEATURES = "Features"
_GROUPS: dict[Code, str] = {
    ErrorCode.STORE_UNAVAILABLE: "Stores, credentials and the landing zone's files",
    ErrorCode.CONFIG_INVALID: "Configuration",
    ErrorCode.SOURCE_UNREADABLE: "Source and Spark",
    ErrorCode.CATALOG_UNAVAILABLE: "Catalogs",
    ErrorCode.NAME_REFUSED: "Slices and the landing zone",
    ErrorCode.CHECKS_FAILED: "Checks and mirror",
    ErrorCode.UNEXPECTED: "Anything else",
}
_WIDTH = 120
_FACT = re.compile(r"\{(\w+)[^{}]*\}")
_SQL = "ALTER "
_TASKS = {
    "mirror-assets rebuild": "[Should I repair or rebuild?](tasks/repair-or-rebuild.md)",
    "mirror-assets fabric": "[Why is my table late?](tasks/late-table.md)",
    "mirror-assets status": "[Why is my table late?](tasks/late-table.md)",
    "mirror-assets reconcile": "[Why is a row missing or different?](tasks/missing-rows.md)",
    "ALTER TABLE": "[Which way of reading changes fits my table?](tasks/choose-changes.md)",
}
"""The page of the first week that explains a command of a next step."""


def modules() -> list[ModuleType]:
    """Return all modules of the package."""
    return [
        importlib.import_module(one.name) for one in pkgutil.walk_packages(mirror_assets.__path__, "mirror_assets.")
    ]


def error_codes() -> list[Code]:
    """Return the codes of the core, then those of the features."""
    modules()
    kinds: list[type[Code]] = sorted(Code.__subclasses__(), key=lambda kind: (kind is not ErrorCode, kind.__name__))
    return [code for kind in kinds for code in kind]


def error_rows() -> list[ErrorRow[MirrorError]]:
    """Return the rows of all tables, in the order of their codes."""
    found = {id(value): value for module in modules() for value in vars(module).values() if isinstance(value, ErrorRow)}
    codes = error_codes()
    return sorted(found.values(), key=lambda row: (codes.index(row.code), row.raises.family, row.message, row.cause))


def shown(template: str) -> str:
    """Return the template with its facts as names in capitals: `{uri}` is URI."""
    return _FACT.sub(lambda fact: fact[1].upper(), template).replace("{{", "{").replace("}}", "}")


def _filled(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _section(code: Code, rows: list[ErrorRow[MirrorError]]) -> str:
    parts = [f"### `{code.value}`"]
    for row in rows:
        message = " ".join(shown(row.message).split())
        parts += [
            _filled(f"**Cause** (`{row.raises.family}`): {row.cause}"),
            _filled(f"> {message}").replace("\n", "\n> "),
            _filled(f"**Next step**: {shown(row.next_step)}"),
        ]
    lines = list(dict.fromkeys(line for row in rows for line in row.commands.splitlines()))
    for language in ("sql", "bash"):
        chosen = [line for line in lines if line.startswith(_SQL) == (language == "sql")]
        if chosen:
            parts.append("\n".join((f"```{language}", *chosen, "```")))
    steps = " ".join((*lines, *(row.next_step for row in rows)))
    tasks = dict.fromkeys(link for command, link in _TASKS.items() if command in steps)
    if tasks:
        parts.append(f"**More**: {', '.join(tasks)}")
    return "\n\n".join(parts)


def page(before: str) -> str:
    """Return the page: its head as it is in `before`, and a section for each code that a row has."""
    rows = error_rows()
    parts = [before.partition("\n## Stores")[0].rstrip()]
    codes = error_codes()
    groups = {codes[len(ErrorCode)]: _FEATURES, **_GROUPS}
    for code in codes:
        if code in groups:
            parts.append(f"## {groups[code]}")
        own = [row for row in rows if row.code is code]
        if own:
            parts.append(_section(code, own))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
