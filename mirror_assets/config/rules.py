"""Rules over several settings. They read the plain document, so they also apply while a setting is wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

from mirror_assets.byte_settings import setting_problem
from mirror_assets.config.document import Document, Steps
from mirror_assets.config.errors import did_you_mean
from mirror_assets.config.sections import MIRROR_PATH
from mirror_assets.config.setting_values import Changes
from mirror_assets.config.variables import has_reference
from mirror_assets.feature import features
from mirror_assets.lakes.catalogs import CatalogType, table_problem
from mirror_assets.landing.errors import NameRefused
from mirror_assets.landing.names import TableName
from mirror_assets.settings import is_uri, local_source

_SECRET_WORD = re.compile(r"password|secret|(^|[.\-_])(key|token)($|[.\-_])", re.IGNORECASE)
_KEYS_NEEDED = (
    "`changes: feed` and `changes: files` need `keys`, the columns that identify a row; `changes: row_tracking` can do "
    "without, and so can `changes: append_only`, for a table whose rows never change"
)
_SPARK_LISTS = (
    "only Spark can list this catalog, and rules scan without Spark; list its tables under `tables` (`mirror-assets "
    "init` does), or find their folders with {store, path}"
)
_PLAIN_TOKEN = re.compile(r";token=(?!\$\{)", re.IGNORECASE)
_SECRET = "this looks like a secret; keep it in an environment variable and write ${NAME}"  # noqa: S105 a message
Mistakes: TypeAlias = Iterator[tuple[Steps, str]]
Rule: TypeAlias = Callable[[Document], Mistakes]


def apply_rules(document: Document) -> None:
    """Apply all rules, and report each violation in the document."""
    for rule in (
        _some_tables,
        _unique_folders,
        _places_known,
        _keys_needed,
        _no_plain_secrets,
        _fixed_spark_settings,
        _separate_folders,
        *(rule for feature in features() for rule in feature.rules()),
    ):
        for steps, message in rule(document):
            document.report(steps, message)


def written_tables(document: Document) -> Iterator[tuple[Steps, Steps, Steps]]:
    """Yield the steps of each table and each rule of `discover`: its own, of its settings, and of its source."""
    for name in document.names("tables"):
        table = ("tables", name)
        yield table, table, (*table, "source")
    for rule in discover_rules(document):
        yield rule, (*rule, "settings"), (*rule, "from")


def discover_rules(document: Document) -> list[Steps]:
    """Return the steps of the rules that find tables."""
    written = document.get("discover")
    return [("discover", str(number)) for number in range(len(written))] if isinstance(written, list) else []


def effective(document: Document, settings: Steps, name: str) -> object:
    """Return a setting, or else that of the defaults."""
    return document.get(*settings, name) if name in document.names(*settings) else document.get("defaults", name)


def _some_tables(document: Document) -> Mistakes:
    """Require tables, or rules that find some."""
    if document.get("tables") in (None, {}) and not document.get("discover") and isinstance(document.value, dict):
        yield ("tables",), "list at least one table here, or add a rule to `discover`"


def _unique_folders(document: Document) -> Mistakes:
    """Require a landing folder of its own for each table: two tables would mix their file numbers."""
    first = dict[str, str]()
    for name in document.names("tables"):
        try:
            folder = TableName.parse(name).folder.casefold()
        except NameRefused:
            continue  # reported where the setting is read
        other = first.setdefault(folder, name)
        if other != name:
            line = document.line_of(("tables", other))
            yield ("tables", name), f"its landing folder is that of {other!r} on line {line}; choose another name"


def _places_known(document: Document) -> Mistakes:
    """Require that the store or catalog of each source exists, and can have such a table."""
    for own, _, source in written_tables(document):
        for kind in ("store", "catalog"):
            name, known = document.get(*source, kind), document.names(f"{kind}s")
            if isinstance(name, str) and name not in known:
                listed = did_you_mean(name, known) if known else f"; add it to `{kind}s`"
                yield (*source, kind), f"unknown {kind} {name!r}{listed}"
        path, catalog = document.get(*source, "path"), document.get(*source, "catalog")
        catalog_type = document.get("catalogs", str(catalog), "type")
        if own[0] == "discover":
            if catalog_type == CatalogType.SPARK.value:
                yield (*source, "catalog"), _SPARK_LISTS
        elif isinstance(path, str) and (path.startswith("/") or ".." in path.split("/")):
            yield (*source, "path"), f"{path!r} leads out of its store; use a path below the store's root"
        elif catalog in document.names("catalogs"):
            problem = table_problem(catalog_type, document.get(*source, "table"))
            if problem:
                yield (*source, "table"), problem


def _keys_needed(document: Document) -> Mistakes:
    """Require keys of tables whose rows are paired by them."""
    for own, settings, _ in written_tables(document):
        keys = effective(document, own, "keys")
        changes = effective(document, settings, "changes")
        if not keys and changes in (None, *(one.value for one in Changes if one.needs_keys)):
            yield (*own, "keys"), _KEYS_NEEDED


def _no_plain_secrets(document: Document) -> Mistakes:
    """Refuse secrets in plain text: mirror.yaml is kept in version control."""
    for name in document.names("spark", "settings"):
        steps = ("spark", "settings", name)
        if _SECRET_WORD.search(name) and ".".join(steps) not in document.from_environment:
            yield steps, _SECRET
    if _PLAIN_TOKEN.search(str(document.get("spark", "remote") or "")):
        yield ("spark", "remote"), _SECRET


def _fixed_spark_settings(document: Document) -> Mistakes:
    """Refuse settings of Spark that decide which rows land, with other values than this package's.

    One that refers to the environment is checked when a session opens.
    """
    for name in document.names("spark", "settings"):
        value = document.get("spark", "settings", name)
        text = str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) else None
        if text is not None and not has_reference(text):
            problem = setting_problem(name, text)
            if problem is not None:
                yield ("spark", "settings", name), problem


def _separate_folders(document: Document) -> Mistakes:
    """Refuse a folder inside another one, where it would be read, replaced or dropped with it."""
    ours: list[Steps] = [("landing_zone", "path"), ("mirror", "path")]
    sources: list[Steps] = [("tables", name, "source") for name in document.names("tables")]
    for one, other in [*combinations(ours, 2), *((one, source) for one in ours for source in sources)]:
        yield from overlap(document, one, other)


def overlap(document: Document, one: Steps, other: Steps) -> Mistakes:
    """Report `other` if its folder is in that of the setting `one`, or the other way round."""
    here, there = _folder(document, one), _folder(document, other)
    if here and there and (here.is_relative_to(there) or there.is_relative_to(here)):
        line = document.line_of(one)
        yield other, f"{there} overlaps with {'.'.join(one)} on line {line}; use separate folders"


def _folder(document: Document, steps: Steps) -> Path | None:
    """Return the real folder of a setting, or None if it is not a path on this machine."""
    value = document.get(*steps)
    if isinstance(value, dict):  # a path in a store, which may be a folder of this machine
        root, path = document.get("stores", str(value.get("store")), "root"), value.get("path")
        value = f"{root}/{path}" if isinstance(root, str) and isinstance(path, str) else None
    if value is None and steps == ("mirror", "path"):
        others = [name for name in document.names("mirror") if document.get("mirror", name) is not None]
        value = None if others else MIRROR_PATH  # a feature's mirror replaces the stand-in
    if value is None:
        value = next((place for feature in features() if (place := feature.folders().get(steps)) is not None), None)
    try:
        local = local_source(value)
    except ValueError:
        return None  # reported where the setting is read
    if not isinstance(local, str) or is_uri(local):
        return None
    return Path(os.path.realpath(document.origin.absolute(local)))
