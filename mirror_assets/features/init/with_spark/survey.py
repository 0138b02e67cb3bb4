"""The lake that `init` surveys: its tables, below a folder, in a store or in a catalog, with their names and states."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from typing import TypeVar

import pydantic

from mirror_assets.column_types import Family
from mirror_assets.config.model import Config
from mirror_assets.config.setting_values import Changes
from mirror_assets.config.table_settings import StorePath, TableSettings
from mirror_assets.errors import ErrorCode, MirrorError, RetryError
from mirror_assets.features.init.column_statistics import ColumnStatistics, column_statistics
from mirror_assets.features.init.errors import NO_TABLES, lake_unfit, no_tables_in_catalog
from mirror_assets.features.init.listing import list_folders
from mirror_assets.lakes.access import access_to
from mirror_assets.lakes.catalogs import (
    CatalogConfig,
    CatalogCredentials,
    CatalogTable,
    CatalogType,
    table_problem,
    unity_client,
)
from mirror_assets.lakes.stores import StoreConfig
from mirror_assets.landing.names import SQL_SCHEMAS, TableName
from mirror_assets.pipeline.project import find_in_spark, source_log
from mirror_assets.pipeline.spark_sessions import Session
from mirror_assets.settings import Origin, is_uri
from mirror_assets.source.commits import SourceState
from mirror_assets.source.errors import leave_out_version
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.read_errors import translated
from mirror_assets.source.schema import Field
from mirror_assets.spark_names import quoted

STORE = "lake"
IN_SPARK = "spark"
# Folders that the new mirror.yaml writes beside itself; they are not part of the lake.
_OURS = ("landing", "mirror", "history", "staging")
_THREADS = 16
_Model = TypeVar("_Model", bound=pydantic.BaseModel)


@dataclass(frozen=True)
class LakeTable:
    """A table of the lake; the last two of `parts` are its name in the mirror.

    `declared_keys` is the primary key that a catalog declares. `sql_name` is its name in SQL, None for a table that SQL
    names by its address. `hindrance` is the reason why it can't be read.
    """

    path: str
    source: StorePath | CatalogTable
    parts: tuple[str, ...]
    declared_keys: tuple[str, ...] = ()
    sql_name: str | None = None
    hindrance: str | None = None


@dataclass(frozen=True)
class Lake:
    """The tables in order of their paths, and the stores, catalogs and Spark settings for mirror.yaml."""

    root: str
    stores: Mapping[str, StoreConfig]
    tables: tuple[LakeTable, ...] = ()
    catalogs: Mapping[str, CatalogConfig] = field(default_factory=dict)
    spark_settings: Mapping[str, str] = field(default_factory=dict)

    def config(self, file: Path, tables: Iterable[tuple[TableName, LakeTable]] = ()) -> Config:
        """Return a configuration at `file` that reaches these tables. Raises pydantic.ValidationError."""
        changes = Changes.APPEND_ONLY.value
        written = {
            "landing_zone": {"path": "./landing"},
            "stores": {name: store.model_dump(exclude_unset=True) for name, store in self.stores.items()},
            "catalogs": {name: catalog.model_dump(exclude_unset=True) for name, catalog in self.catalogs.items()},
            "spark": {"settings": dict(self.spark_settings)},
            "tables": {str(name): {"source": table.source, "changes": changes} for name, table in tables},
        }
        return Config.model_validate(written, context=Origin(file))


@dataclass(frozen=True)
class CatalogRequest:
    """The options for a catalog: the server (or `spark`), the catalog's name there, and a pattern of its schemas.

    `stores` are the addresses of its tables' stores, `store` their settings. `spark_settings` are those of the session
    that has the catalog.
    """

    place: str
    catalog: str
    schema: str
    token_variable: str | None
    stores: tuple[str, ...]
    store: Mapping[str, object]
    spark_settings: Mapping[str, str]


def open_lake(place: str, settings: Mapping[str, object], depth: int, beside: Path | None = None) -> Lake:
    """Return the tables at most `depth` folders below a folder or a store's address.

    `settings` are those of a store except its root. Folders that a mirror.yaml in the folder `beside` writes are
    omitted. Raises SettingError for unfit settings and a place without tables, and what `list_folders` raises.
    """
    store = _store(place, settings)
    root, address = str(store.root), store.address
    with ThreadPoolExecutor(_THREADS) as pool:
        # One name more than the depth, which also lists the deepest folders: that shows their logs.
        found = list_folders(access_to(root, (store,)), "/".join("*" * (depth + 1)), pool)
    if "" in found.tables:
        above = place.rstrip("/").rpartition("/")[0] or "."
        raise lake_unfit(place, "it is a table itself", f"name the folder that contains it, {above}.")
    own = [name for name in re.split(r"[/\\]+", address.path if address else root) if name][-1:]
    ours = [] if beside is None or address is not None else [beside.resolve() / name for name in _OURS]
    ours = [folder for folder in ours if not Path(root).resolve().is_relative_to(folder)]
    tables = tuple(
        LakeTable(path, StorePath(STORE, path), (*own, *path.split("/")), hindrance=found.unlisted.get(path))
        for path in sorted((*found.tables, *found.unlisted))
        if not any((Path(root) / path).resolve().is_relative_to(folder) for folder in ours)
    )
    if not tables:
        raise NO_TABLES(place=place, depth=depth, next_step=leave_out_version(place))
    return Lake(root, {STORE: store}, tables)


def open_catalog(request: CatalogRequest, file: Path, spark: Callable[[Config], Session]) -> Lake:
    """Return the tables of a catalog; `spark` opens a session, for a catalog of Spark only.

    Raises SettingError for unfit settings and a catalog without tables, and what the catalog's client raises.
    """
    place, is_unity = request.place, request.place.startswith(("https://", "http://"))
    if request.store and not request.stores:
        option = next(iter(request.store)).replace("_", "-")
        why = f"--{option} is a setting of a store, and no store is named"
        raise lake_unfit(place, why, "name the store of the tables with --store.")
    if not is_unity and place != IN_SPARK:
        why = f"with --catalog, it is the address of a Unity Catalog (https://…), or `{IN_SPARK}`"
        raise lake_unfit(place, why, "correct it, or omit --catalog.")
    settings: dict[str, object] = {"type": CatalogType.SPARK, "name": request.catalog}
    if is_unity:
        settings = {"type": CatalogType.UNITY, "url": place}
    if is_unity and "credential" in request.store:
        settings["credentials"] = CatalogCredentials.STORES
    if request.token_variable is not None:
        settings["token_variable"] = request.token_variable
    catalog = _validated(CatalogConfig, settings, place)
    stores = {f"{STORE}{number or ''}": _store(root, request.store) for number, root in enumerate(request.stores)}
    lake = Lake(place, stores, (), {request.catalog: catalog}, request.spark_settings)
    if is_unity:
        tables, others = _unity_tables(request, catalog)
    else:
        tables, others = _spark_tables(request, catalog, lake.config(file), spark)
    if not tables:
        raise no_tables_in_catalog(request.catalog, request.schema, others)
    return replace(lake, tables=tuple(sorted(tables, key=lambda table: table.path)))


def _store(place: str, settings: Mapping[str, object]) -> StoreConfig:
    """Return the store at an address or folder, with these settings. Raises lake_unfit."""
    root = place if is_uri(place) else str(Path(place).absolute())
    if "${" in root:
        raise lake_unfit(place, "mirror.yaml takes `${` for an environment variable", "rename the folder.")
    return _validated(StoreConfig, {"root": root, **settings}, place)


def _validated(model: type[_Model], settings: Mapping[str, object], place: str) -> _Model:
    try:
        return model.model_validate(settings)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        why = str(first.get("ctx", {}).get("error", first["msg"]))
        raise lake_unfit(place, why, "correct the address or the options.") from error


def _catalog_table(request: CatalogRequest, name: str, parts: tuple[str, ...]) -> LakeTable:
    kind = IN_SPARK if request.place == IN_SPARK else CatalogType.UNITY.value
    sql_name = ".".join(quoted(part) for part in (request.catalog, *parts))
    source = CatalogTable(request.catalog, name)
    return LakeTable(name, source, parts, sql_name=sql_name, hindrance=table_problem(kind, name))


def _unity_tables(request: CatalogRequest, config: CatalogConfig) -> tuple[list[LakeTable], int]:
    """Return the Delta tables of a Unity Catalog, and the number of other entries, such as views."""
    client = unity_client(request.catalog, config)
    schemas = [name for name in client.schemas() if fnmatchcase(name, request.schema)]
    listed = [(schema, table) for schema in schemas for table in client.tables(schema)]
    tables = [
        replace(
            _catalog_table(request, f"{schema}.{table.name}", (schema, table.name)), declared_keys=table.primary_key
        )
        for schema, table in listed
        if table.is_delta
    ]
    return tables, len(listed) - len(tables)


def _spark_tables(
    request: CatalogRequest, catalog: CatalogConfig, config: Config, spark: Callable[[Config], Session]
) -> tuple[list[LakeTable], int]:
    """Return the Delta tables of a catalog of Spark, and the number of other entries.

    Tables with other errors are included: the survey reports them. The addresses are cached for the survey.
    """
    from mirror_assets.encode.spark_catalogs import list_tables

    session, tables, others = spark(config), list[LakeTable](), 0
    for parts in list_tables(session("catalogs"), catalog.known_as(request.catalog)):
        if not fnmatchcase(parts[0], request.schema):
            continue
        table = _catalog_table(request, ".".join(parts), parts)
        try:
            if not table.hindrance:
                config.locate(str(table.source), partial(find_in_spark, session, table.path))
        except RetryError:
            raise
        except MirrorError as error:
            if error.code is ErrorCode.SOURCE_NOT_DELTA:
                others += 1
                continue
        tables.append(table)
    return tables, others


@dataclass(frozen=True)
class Survey:
    """A table at its newest version, and its name in the mirror; `settings` mirror all of its columns."""

    table: LakeTable
    settings: TableSettings
    log: DeltaLog
    state: SourceState
    statistics: tuple[ColumnStatistics, ...]

    @property
    def name(self) -> TableName:
        """The table's name in the mirror."""
        return self.settings.name

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The columns that a landing file can hold."""
        return tuple(field for field in self.state.schema.fields if field not in self.unfit)

    @cached_property
    def unfit(self) -> tuple[Field, ...]:
        """The columns that a landing file can't hold."""
        return tuple(field for field in self.state.schema.fields if field.kind.family is Family.REFUSED)


@dataclass(frozen=True)
class Unreadable:
    """A table that can't be read, and the reason."""

    path: str
    why: str


def survey_lake(lake: Lake, file: Path) -> tuple[Survey | Unreadable, ...]:
    """Survey all tables in threads; an unreadable table doesn't affect the others. `file` is the new mirror.yaml."""
    names = name_tables(table.parts for table in lake.tables)
    with ThreadPoolExecutor(_THREADS) as pool:
        return tuple(pool.map(partial(_survey, lake, file), lake.tables, names))


def _survey(lake: Lake, file: Path, table: LakeTable, name: TableName) -> Survey | Unreadable:
    shown = table.path.encode("utf-8", "backslashreplace").decode()
    hindrance = table.hindrance
    if "${" in table.path:
        hindrance = f"{shown} can't be named: mirror.yaml takes `${{` for an environment variable."
    elif shown != table.path:
        hindrance = f"{shown} can't be named: its name is not UTF-8."
    if hindrance:
        return Unreadable(table.path, hindrance)
    try:
        config = lake.config(file, [(name, table)])
        settings = config.table(name)
        log = source_log(config, settings)
        with translated(settings.source):
            state = log.state()
            _ = state.schema  # raises for a schema that can't be read
            return Survey(table, settings, log, state, column_statistics(log, state))
    except MirrorError as error:
        return Unreadable(table.path, error.what)
    except pydantic.ValidationError as error:
        return Unreadable(table.path, error.errors(include_url=False)[0]["msg"])
    except ValueError as error:  # from the rules for paths
        return Unreadable(table.path, str(error))


# Refused in a landing zone (landing/names.py), and `$`, which mirror.yaml takes for variables.
_UNFIT = re.compile(r'[\\/:*?"<>|.%$\'`#+\x00-\x1f\x7f-\x9f\ud800-\udfff\s]+')
_LONGEST = 100


def name_tables(paths: Iterable[Sequence[str]]) -> list[TableName]:
    """Return a name for each path, made of its last two parts.

    If several tables would share a folder of the landing zone, all but that of the shortest path get a number.
    """
    taken = set[str]()
    listed = list(paths)
    names = dict[int, TableName]()
    for index in sorted(range(len(listed)), key=lambda index: len(listed[index])):
        *above, table = (_fit(part) for part in listed[index][-2:])
        above = [f"{schema}_" if SQL_SCHEMAS.fullmatch(schema) else schema for schema in above]
        for number in count(1):
            last = table if number == 1 else f"{table}_{number}"
            name = TableName.parse(".".join((*above, last)))
            if name.folder.casefold() not in taken:
                break
        taken.add(name.folder.casefold())
        names[index] = name
    return [names[index] for index in range(len(listed))]


def _fit(part: str) -> str:
    """Return the part without the characters that a landing zone refuses, at most 100 bytes long."""
    text = _UNFIT.sub("_", part.strip()).lstrip("_")
    return text.encode()[:_LONGEST].decode(errors="ignore").strip() or "table"
