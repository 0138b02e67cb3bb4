"""The text of mirror.yaml and its SQL file: written by hand for the comments; PyYAML writes the values."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import yaml

from mirror_assets.features.init.entries import TableEntry
from mirror_assets.features.init.survey import Unreadable
from mirror_assets.features.init.surveyed_lake import Lake
from mirror_assets.lakes.stores import StoreConfig
from mirror_assets.settings import is_uri
from mirror_assets.source.table_properties import FEED_BY_DEFAULT

_WIDTH = 110
_HEADER = """\
# Written by `mirror-assets init`. Paths are relative to this file.
landing_zone: {path: ./landing}
# For Fabric, instead: landing_zone: {onelake: {url: <the landing zone's URL, copied from the portal>}}
mirror: {path: ./mirror}
"""
_SQL_HEADER = f"""\
-- Written by `mirror-assets init`, and not run. Review it, then run it where the tables are written.
-- No statement changes a row. Each is one commit; enabling row tracking takes several.
-- To enable the change data feed for all new tables, set this in the Spark session or cluster that creates them:
--   {FEED_BY_DEFAULT} = true
"""
_NOTHING = "-- Nothing is missing.\n"


def config_text(
    lake: Lake, entries: Sequence[TableEntry], unreadable: Sequence[Unreadable], file: Path, sql: Path
) -> str:
    """Return the text of mirror.yaml. Tables with something missing are comments."""
    blocks = [_HEADER]
    if lake.spark_settings:
        blocks.append(f"spark:\n  settings: {flow(dict(lake.spark_settings))}\n")
    stores = {name: _store(store, file) for name, store in lake.stores.items()}
    catalogs = {name: catalog.model_dump(mode="json", exclude_defaults=True) for name, catalog in lake.catalogs.items()}
    for block, places in (("stores", stores), ("catalogs", catalogs)):
        if places:
            lines = [f"  {flow(name)}: {flow(place)}" for name, place in places.items()]
            blocks.append("\n".join([f"{block}:", *lines, ""]))
    ready = any(entry.missing is None for entry in entries)
    tables = ["\n".join(_table(entry, sql)) + "\n" for entry in entries]
    blocks.append("\n".join([f"tables:{'' if ready else ' {}'}", *tables]))
    if unreadable:
        lines = [line for table in unreadable for line in _comment(f"- {table.path}: {table.why}")]
        blocks.append("\n".join(["# Not mirrored, because they can't be read:", *lines, ""]))
    return "\n".join(blocks)


def _store(store: StoreConfig, file: Path) -> dict[str, object]:
    """Return the store's settings that differ from the defaults; its root is relative to the file if it is below."""
    settings = store.model_dump(mode="json", exclude_defaults=True)
    folder = file.absolute().parent
    if not is_uri(store.root) and Path(store.root).is_relative_to(folder):
        settings["root"] = f"./{Path(store.root).relative_to(folder).as_posix()}"
    return settings


def _table(entry: TableEntry, sql: Path) -> Iterator[str]:
    for note in entry.notes:
        yield from _comment(note, "  ")
    if entry.keys:
        keys = entry.keys
        yield from _comment(f"{', '.join(keys.columns)}: {keys.proof.value}: {keys.finding}", "  ")
    if entry.missing:
        yield from _comment(f"Not mirrored yet: {entry.missing}.", "  ")
        step = "Correct that"
        if any(statement.needed for statement in entry.statements):
            known = "If you know its key, set `keys` and `changes: feed`. Otherwise, run" if entry.feed else "Run"
            step = f"{known} its statement in {sql.name}"
        yield from _comment(f"{step}. Then remove the # at the beginning of each line:", "  ")
    off = "#" if entry.missing else ""
    yield f"{off}  {flow(str(entry.name))}:"
    yield f"{off}    source: {flow(asdict(entry.source))}"
    if entry.keys:
        yield f"{off}    keys: {flow(list(entry.keys.columns))}"
    if entry.columns is not None:
        yield f"{off}    columns: {flow(list(entry.columns))}"
    yield f"{off}    changes: {entry.changes.value}"


class _OneLine(yaml.SafeDumper):
    """Writes texts with line breaks and other unprintable characters in double quotes, where they are escaped."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_OneLine.add_representer(str, _text)


def flow(value: object) -> str:
    """Return the value as YAML in one line, with quotes if needed."""
    text: str = yaml.dump(
        value, Dumper=_OneLine, default_flow_style=True, allow_unicode=True, width=float("inf"), sort_keys=False
    )
    return text.removesuffix("\n").removesuffix("\n...")


def _comment(text: str, indent: str = "") -> list[str]:
    """Return the text as lines of a comment; unprintable characters are escaped."""
    escaped = (one if one.isprintable() else one.encode("unicode_escape").decode() for one in " ".join(text.split()))
    return [f"{indent}# {line}" for line in _wrapped("".join(escaped))]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def sql_text(entries: Sequence[TableEntry]) -> str:
    """Return the text of the SQL file. Statements that are advised but not needed are comments."""
    blocks = list[str]()
    for entry in entries:
        lines = [f"-- {' '.join(str(entry.name).split())}"]
        for statement in entry.statements:
            lines += [f"-- {line}" for line in _wrapped(" ".join(statement.why.split()))]
            if "\n" in statement.sql or "\r" in statement.sql:
                lines.append("-- The table's address has a line break: rename its folder.")
            else:
                lines.append(f"{statement.sql};" if statement.needed else f"-- Advised: {statement.sql};")
        if entry.statements:
            blocks.append("\n".join(lines) + "\n")
    return "\n".join([_SQL_HEADER, *(blocks or [_NOTHING])])
