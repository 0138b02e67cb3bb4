"""Rules over several settings. They read the plain document, so that they also apply while a setting is wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from mirror_assets.config.catalogs import CatalogCredentials, CatalogType, table_problem
from mirror_assets.config.discover_rule import NewTables
from mirror_assets.config.document import Document, Steps, Value
from mirror_assets.config.errors import did_you_mean
from mirror_assets.config.places import HISTORY_PATH, MIRROR_PATH
from mirror_assets.config.setting_values import Changes, HistoryMode, is_uri, local_source
from mirror_assets.config.table_settings import FramesOf
from mirror_assets.landing.errors import NameRefused
from mirror_assets.landing.names import TableName

_SECRET_WORD = re.compile(r"password|secret|(^|[.\-_])(key|token)($|[.\-_])", re.IGNORECASE)
_KEYS_NEEDED = (
    "`changes: feed` needs `keys`, the columns that identify a row; `changes: row_tracking` can do without, and so can "
    "`changes: append_only`, for a table that rows are only ever appended to"
)
_FABRIC_FRAMES = (
    "nothing checks the frames of a mirror in Fabric, whose tables Fabric itself cleans up; write `source`, or leave "
    "it out, or mirror with the stand-in (mirror.path)"
)
_FABRIC = ("mirror", "fabric")
_READ_ONLY = (
    "the catalog's credentials for this table are for reading only; leave maintenance to the table's owner, or write "
    "`credentials: stores` in the catalog"
)
_SPARK_LISTS = (
    "only Spark can list this catalog, and tables are looked for without it; write its tables under `tables` (`mirror-"
    "assets init` does), or name their folders by {store, path}"
)
_SECRET = "this looks like a secret; keep it in an environment variable and write ${NAME}"  # noqa: S105 a message


def apply_rules(document: Document) -> None:
    """Apply all rules, and report each violation in the document."""
    for rule in (
        _some_tables,
        _own_folders,
        _stores_known,
        _catalogs_known,
        _no_vended_maintenance,
        _keys_needed,
        _finding_rules,
        _source_frames,
        _no_plain_secrets,
        _folders_apart,
    ):
        for steps, message in rule(document):
            document.report(steps, message)


def _some_tables(document: Document) -> Iterator[tuple[Steps, str]]:
    """Require tables, or rules that find some."""
    if document.get("tables") in (None, {}) and not document.get("discover") and isinstance(document.value, dict):
        yield ("tables",), "write at least one table here, or a rule that finds some under `discover`"


def _own_folders(document: Document) -> Iterator[tuple[Steps, str]]:
    """Require a table folder of its own for each table: two tables would mix their file numbers."""
    first: dict[str, str] = {}
    for name in document.names("tables"):
        try:
            folder = TableName.parse(name).folder.casefold()
        except NameRefused:
            continue
        other = first.setdefault(folder, name)
        if other != name:
            line = document.line_of(("tables", other))
            yield ("tables", name), f"its table folder is that of {other!r} on line {line}; choose another name"


def _stores_known(document: Document) -> Iterator[tuple[Steps, str]]:
    """Require that the store of each source is there, and that the table lies in it."""
    known = document.names("stores")
    for name in document.names("tables"):
        steps = ("tables", name, "source")
        store, path = document.get(*steps, "store"), document.get(*steps, "path")
        if isinstance(store, str) and store not in known:
            yield (*steps, "store"), _no_store(store, known)
        if isinstance(path, str) and (path.startswith("/") or ".." in path.split("/")):
            yield (*steps, "path"), f"{path!r} leads out of its store; write a path below the store's root"


def _no_store(store: str, known: tuple[str, ...]) -> str:
    listed = did_you_mean(store, known) if known else "; write it under `stores`"
    return f"there is no store {store!r}{listed}"


def _catalogs_known(document: Document) -> Iterator[tuple[Steps, str]]:
    """Require that the catalog of each source is there, and that the table has a name as tables have there."""
    known = document.names("catalogs")
    for name in document.names("tables"):
        steps = ("tables", name, "source")
        catalog, table = document.get(*steps, "catalog"), document.get(*steps, "table")
        if isinstance(catalog, str) and catalog not in known:
            yield (*steps, "catalog"), _no_catalog(catalog, known)
        problem = table_problem(document.get("catalogs", str(catalog), "type"), table) if catalog in known else None
        if problem:
            yield (*steps, "table"), problem


def _no_catalog(catalog: str, known: tuple[str, ...]) -> str:
    listed = did_you_mean(catalog, known) if known else "; write it under `catalogs`"
    return f"there is no catalog {catalog!r}{listed}"


def _no_vended_maintenance(document: Document) -> Iterator[tuple[Steps, str]]:
    """Refuse maintenance of tables that are read with a catalog's credentials: those are for reading."""
    tables = _mapping(document.value, "tables").items()
    for own, settings, source in (
        *((("tables", name), table, _mapping(table, "source")) for name, table in tables),
        *(
            (("discover", str(number), "settings"), _mapping(rule, "settings"), _mapping(rule, "from"))
            for number, rule in enumerate(_rules(document))
        ),
    ):
        catalog = document.get("catalogs", str(source.get("catalog")))
        if not _is_vending(catalog):
            continue
        for place, written in ((("defaults",), document.get("defaults")), (own, settings)):
            if isinstance(written, dict) and written.get("maintenance"):
                yield (*place, "maintenance"), _READ_ONLY


def _is_vending(catalog: Value) -> bool:
    """Whether tables are read with credentials that the catalog hands out."""
    if not isinstance(catalog, dict) or catalog.get("type") != CatalogType.UNITY.value:
        return False
    return catalog.get("credentials") != CatalogCredentials.STORES.value


def _finding_rules(document: Document) -> Iterator[tuple[Steps, str]]:
    """Require of each rule of `discover` a place that is there, keys where changes need them, and no idle setting."""
    for number, rule in enumerate(_rules(document)):
        steps, settings = ("discover", str(number)), _mapping(rule, "settings")
        for setting, message in _place_known(document, _mapping(rule, "from")):
            yield (*steps, "from", setting), message
        if "keys" in settings:
            yield (*steps, "settings", "keys"), "write them as `keys: {default: […]}` of the rule"
        changes, own = settings.get("changes", document.get("defaults", "changes")), _mapping(rule, "keys")
        if changes in (None, Changes.FEED.value) and not own and not document.get("defaults", "keys"):
            yield (*steps, "keys"), _KEYS_NEEDED
        if isinstance(rule, dict) and rule.get("approved") and rule.get("new_tables") != NewTables.HOLD.value:
            yield (*steps, "approved"), "it needs `new_tables: hold`: else nothing waits for approval"
        if _mapping(settings, "direct_lake").get("frames_of") == FramesOf.MIRROR.value and document.get(*_FABRIC):
            yield (*steps, "settings", "direct_lake", "frames_of"), _FABRIC_FRAMES


def _rules(document: Document) -> list[Value]:
    written = document.get("discover")
    return written if isinstance(written, list) else []


def _place_known(document: Document, place: dict[str, Value]) -> Iterator[tuple[str, str]]:
    """Require that the store or catalog of a rule is there, and that it can be listed without a JVM."""
    (store, stores), (catalog, catalogs) = (
        (place.get(kind), document.names(f"{kind}s")) for kind in ("store", "catalog")
    )
    if isinstance(store, str) and store not in stores:
        yield "store", _no_store(store, stores)
    if isinstance(catalog, str) and catalog not in catalogs:
        yield "catalog", _no_catalog(catalog, catalogs)
    elif document.get("catalogs", str(catalog), "type") == CatalogType.SPARK.value:
        yield "catalog", _SPARK_LISTS


def _mapping(value: Value, step: str) -> dict[str, Value]:
    """Return the mapping at a step of another, or an empty one."""
    below = value.get(step) if isinstance(value, dict) else None
    return below if isinstance(below, dict) else {}


def _keys_needed(document: Document) -> Iterator[tuple[Steps, str]]:
    """Require keys of tables that mirror the change data feed."""
    for name in document.names("tables"):
        keys, changes = (_effective(document, name, setting) for setting in ("keys", "changes"))
        if changes in (None, Changes.FEED.value) and keys in (None, []):
            yield ("tables", name, "keys"), _KEYS_NEEDED


def _source_frames(document: Document) -> Iterator[tuple[Steps, str]]:
    """Refuse `frames_of: mirror` for a mirrored database: Fabric vacuums its tables itself."""
    if document.get(*_FABRIC) is None:
        return
    for place in (("defaults",), *(("tables", name) for name in document.names("tables"))):
        steps = (*place, "direct_lake", "frames_of")
        if document.get(*steps) == FramesOf.MIRROR.value:
            yield steps, _FABRIC_FRAMES


def _no_plain_secrets(document: Document) -> Iterator[tuple[Steps, str]]:
    """Refuse secrets in plain text: mirror.yaml is kept in version control."""
    for name in document.names("spark", "settings"):
        steps = ("spark", "settings", name)
        if _SECRET_WORD.search(name) and ".".join(steps) not in document.from_environment:
            yield steps, _SECRET


def _folders_apart(document: Document) -> Iterator[tuple[Steps, str]]:
    """Refuse a folder inside another one, where it would be read, replaced or dropped with it."""
    ours: list[Steps] = [("landing_zone", "path"), ("mirror", "path")]
    if any(_keeps_history(document, name) for name in document.names("tables")):
        ours.append(("history", "path"))
    sources = [("tables", name, "source") for name in document.names("tables")]
    for one, other in [*combinations(ours, 2), *((one, source) for one in ours for source in sources)]:
        here, there = _folder(document, one), _folder(document, other)
        if here and there and (here.is_relative_to(there) or there.is_relative_to(here)):
            line = document.line_of(one)
            yield other, f"{there} overlaps with {'.'.join(one)} on line {line}; keep their folders apart"


def _effective(document: Document, table: str, setting: str) -> object:
    own = setting in document.names("tables", table)
    return document.get("tables", table, setting) if own else document.get("defaults", setting)


def _keeps_history(document: Document, table: str) -> bool:
    return _effective(document, table, "history") in (HistoryMode.SLICES.value, HistoryMode.STREAM.value)


def _folder(document: Document, steps: Steps) -> Path | None:
    """Return the real folder of a path setting, or None where it is no path on this machine."""
    value = document.get(*steps)
    if isinstance(value, dict):
        value = _in_store(document, value)
    if value is None and steps == ("mirror", "path") and document.get("mirror", "fabric") is None:
        value = MIRROR_PATH
    if value is None and steps == ("history", "path"):
        value = HISTORY_PATH
    try:
        path = local_source(value)
    except ValueError:
        return None  # reported where the setting is read
    if not isinstance(path, str) or is_uri(path):
        return None
    return Path(os.path.realpath(document.origin.absolute(path)))


def _in_store(document: Document, source: dict[str, Value]) -> str | None:
    """Return the path of a table in a store that is a folder of this machine."""
    root, path = document.get("stores", str(source.get("store")), "root"), source.get("path")
    return f"{root}/{path}" if isinstance(root, str) and isinstance(path, str) else None
