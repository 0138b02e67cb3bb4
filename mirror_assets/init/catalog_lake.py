"""The lake that is a catalog: the tables of its schemas, with the primary keys that it declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import pydantic

from mirror_assets.composition import Session, find_in_spark
from mirror_assets.config import Config
from mirror_assets.config.catalogs import CatalogAddress, CatalogConfig, CatalogCredentials, CatalogType, table_problem
from mirror_assets.config.locate import unity_client
from mirror_assets.config.table_settings import CatalogTable
from mirror_assets.errors import ErrorCode, MirrorError, RetryError
from mirror_assets.init.errors import lake_unfit, no_tables_in_catalog
from mirror_assets.init.lake import Lake, LakeTable, lake_config, open_store
from mirror_assets.source.sql_names import quoted
from mirror_assets.storage.lake.unity_answers import UnityTable

IN_SPARK = "spark"
_HTTP = ("https://", "http://")


@dataclass(frozen=True)
class CatalogRequest:
    """What was typed: the server (or `spark`), the catalog's name there, and which of its schemas.

    `stores` are addresses of the stores of its tables, `store` the settings of these. `spark_settings` are
    those of the session that has the catalog.
    """

    place: str
    catalog: str
    schema: str
    token_variable: str | None
    stores: tuple[str, ...]
    store: Mapping[str, object]
    spark_settings: Mapping[str, str]


def open_catalog(request: CatalogRequest, file: Path, spark: Callable[[Config], Session]) -> Lake:
    """Return the tables of a catalog, in order of their names; `spark` is asked for a catalog of Spark only.

    Raises SettingError for settings that don't fit and where no table is, and what the catalog's client raises.
    """
    given = {name: value for name, value in request.store.items() if value is not None}
    if given and not request.stores:
        option = next(iter(given)).replace("_", "-")
        why = f"--{option} is a setting of a store, and none is named"
        raise lake_unfit(request.place, why, "name the store that the tables lie in, by --store.")
    config = _catalog(request, has_identity="credential" in given)
    stores = {f"lake{number or ''}": open_store(root, given) for number, root in enumerate(request.stores)}
    lake = Lake(request.place, stores, (), {request.catalog: config}, request.spark_settings)
    if config.type is CatalogType.UNITY:
        tables, others = _of_unity(request, config)
    else:
        tables, others = _of_spark(request, config, lake, file, spark)
    if not tables:
        raise no_tables_in_catalog(request.catalog, request.schema, others)
    return replace(lake, tables=tuple(sorted(tables, key=lambda table: table.path)))


def _catalog(request: CatalogRequest, *, has_identity: bool) -> CatalogConfig:
    is_unity = request.place.startswith(_HTTP)
    if not is_unity and request.place != IN_SPARK:
        why = f"with --catalog, it is the address of a Unity Catalog (https://…), or `{IN_SPARK}`"
        raise lake_unfit(request.place, why, "correct it, or leave --catalog out.")
    if is_unity:
        settings = {
            "type": CatalogType.UNITY,
            "url": request.place,
            "token_variable": request.token_variable,
            "credentials": CatalogCredentials.STORES if has_identity else None,
        }
    else:
        settings = {"type": CatalogType.SPARK, "name": request.catalog, "token_variable": request.token_variable}
    try:
        return CatalogConfig.model_validate({name: value for name, value in settings.items() if value is not None})
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise lake_unfit(request.place, str(first.get("ctx", {}).get("error", first["msg"])), "correct it.") from error


def _of_unity(request: CatalogRequest, config: CatalogConfig) -> tuple[list[LakeTable], int]:
    """Return the tables, and how many others there are, such as views."""
    client = unity_client(request.catalog, config)
    schemas = [name for name in client.schemas() if fnmatchcase(name, request.schema)]
    listed = [(schema, table) for schema in schemas for table in client.tables(schema)]
    tables = [_table(request, schema, table) for schema, table in listed if table.is_delta]
    return tables, len(listed) - len(tables)


def _table(request: CatalogRequest, schema: str, table: UnityTable) -> LakeTable:
    found = _named(request, f"{schema}.{table.name}", (schema, table.name))
    return replace(found, declared_keys=table.primary_key)


def _named(request: CatalogRequest, name: str, parts: tuple[str, ...]) -> LakeTable:
    kind = IN_SPARK if request.place == IN_SPARK else CatalogType.UNITY.value
    sql_name = ".".join(quoted(part) for part in (request.catalog, *parts))
    source = CatalogTable(request.catalog, name)
    return LakeTable(name, source, parts, hindrance=table_problem(kind, name), sql_name=sql_name)


def _of_spark(
    request: CatalogRequest, config: CatalogConfig, lake: Lake, file: Path, spark: Callable[[Config], Session]
) -> tuple[list[LakeTable], int]:
    from mirror_assets.encode.spark_catalog import list_tables

    settings = lake_config(lake, file)
    session = spark(settings)
    names = [
        parts
        for parts in list_tables(session("catalogs"), config.known_as(request.catalog))
        if fnmatchcase(parts[0], request.schema)
    ]
    tables = [_named(request, ".".join(parts), parts) for parts in names]
    found = [table for table in tables if table.hindrance or _is_delta(settings, session, request.catalog, table)]
    return found, len(tables) - len(found)


def _is_delta(config: Config, session: Session, catalog: str, table: LakeTable) -> bool:
    """Return whether Spark has a Delta table under the name; its address is cached for the survey.

    What else keeps it from being read, the survey says.
    """
    try:
        config.locate(str(CatalogAddress(catalog, table.path)), partial(find_in_spark, session, table.path))
    except RetryError:
        raise
    except MirrorError as error:
        return error.code is not ErrorCode.SOURCE_NOT_DELTA
    return True
