"""The text of mirror.yaml: written by hand, so that each table says why it is mirrored like this; values by PyYAML."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import yaml

from mirror_assets.config.setting_values import is_uri
from mirror_assets.config.stores import StoreConfig
from mirror_assets.init.entries import TableEntry, Unreadable
from mirror_assets.init.lake import Lake

_WIDTH = 110
_HEADER = """\
# Written by `mirror-assets init`. Paths are relative to this file.
landing_zone: {path: ./landing}
# Fabric's, instead: landing_zone: {onelake: {url: <the landing zone's URL, as the portal shows it>}}
mirror: {path: ./mirror}
"""


def config_text(
    lake: Lake, entries: Sequence[TableEntry], unreadable: Sequence[Unreadable], file: Path, sql: Path
) -> str:
    """Return the text of the file. Tables for which something is missing are comments."""
    blocks = [_HEADER, *_places(lake, file)]
    tables = ["\n".join(_table(entry, sql)) + "\n" for entry in entries]
    ready = any(entry.missing is None for entry in entries)
    blocks.append("\n".join([f"tables:{'' if ready else ' {}'}", *tables]))
    if unreadable:
        blocks.append("\n".join(["# Not mirrored, for they can't be read:", *_unreadable(unreadable), ""]))
    return "\n".join(blocks)


def _places(lake: Lake, file: Path) -> Iterator[str]:
    """Yield where the tables are: Spark's settings for that, stores and catalogs, as far as there are any."""
    if lake.spark_settings:
        yield f"spark:\n  settings: {flow(dict(lake.spark_settings))}\n"
    catalogs = {name: catalog.model_dump(mode="json", exclude_defaults=True) for name, catalog in lake.catalogs.items()}
    stores = {name: _store(store, file) for name, store in lake.stores.items()}
    for block, entries in (("stores", stores), ("catalogs", catalogs)):
        if entries:
            yield "\n".join([f"{block}:", *(f"  {flow(name)}: {flow(one)}" for name, one in entries.items()), ""])


class _OneLine(yaml.SafeDumper):
    """Writes texts with line breaks and the like in double quotes, where they are escaped."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_OneLine.add_representer(str, _text)


def flow(value: object) -> str:
    """Return the value as YAML in one line, quoted where that is needed."""
    text: str = yaml.dump(
        value, Dumper=_OneLine, default_flow_style=True, allow_unicode=True, width=float("inf"), sort_keys=False
    )
    return text.removesuffix("\n").removesuffix("\n...")


def comment(text: str, indent: str = "") -> list[str]:
    """Return the text as lines of a comment; what YAML does not allow in one is escaped."""
    plain = "".join(_printable(character) for character in " ".join(text.split()))
    lines = textwrap.wrap(plain, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [f"{indent}# {line}" for line in lines]


def _printable(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def _store(store: StoreConfig, file: Path) -> Mapping[str, object]:
    """Return the store's settings that differ from the defaults, its root as a path relative to the file if below."""
    settings = store.model_dump(mode="json", exclude_defaults=True)
    folder = file.absolute().parent
    if not is_uri(store.root) and Path(store.root).is_relative_to(folder):
        settings["root"] = f"./{Path(store.root).relative_to(folder).as_posix()}"
    return settings


def _table(entry: TableEntry, sql: Path) -> Iterator[str]:
    for note in entry.notes:
        yield from comment(note, "  ")
    if entry.keys:
        keys = entry.keys
        yield from comment(f"{', '.join(keys.columns)}: {keys.proof.value}: {keys.finding}", "  ")
    if entry.missing:
        yield from comment(f"Not mirrored yet: {entry.missing}.", "  ")
        by_statement = any(statement.needed for statement in entry.statements)
        step = f"Run its statement in {sql.name}" if by_statement else "Correct that"
        if entry.needs_key_only:
            step = f"If you know its key, write `keys` and `changes: feed`. Otherwise, run its statement in {sql.name}"
        yield from comment(f"{step}. Then remove the # at the beginning of each line:", "  ")
    off = "#" if entry.missing else ""
    for line in _settings(entry):
        yield f"{off}{line}"


def _settings(entry: TableEntry) -> Iterator[str]:
    yield f"  {flow(str(entry.name))}:"
    yield f"    source: {flow(asdict(entry.source))}"
    if entry.keys:
        yield f"    keys: {flow(list(entry.keys.columns))}"
    if entry.columns is not None:
        yield f"    columns: {flow(list(entry.columns))}"
    yield f"    changes: {entry.changes.value}"


def _unreadable(tables: Sequence[Unreadable]) -> Iterator[str]:
    for table in tables:
        yield from comment(f"- {table.path}: {table.why}")
