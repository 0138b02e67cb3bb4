"""Loads sources, mirrors and histories as inputs of downstream assets, through dagster-deltalake's type handlers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from typing import cast

import dagster as dg
import pyarrow as pa
import pyarrow.dataset as ds
from dagster_deltalake.handler import DeltalakeBaseArrowTypeHandler, DeltaLakePyArrowTypeHandler
from dagster_deltalake.io_manager import TableConnection
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaProtocolError

from mirror_assets.composition import open_mirror, source_log
from mirror_assets.config.zone import open_zone
from mirror_assets.feature import asset_of_feature
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.asset_names import AssetKind
from mirror_assets.orchestration.dagster_internals import TableSlice
from mirror_assets.orchestration.errors import INPUT_UNSUPPORTED, NOT_MIRRORED_YET
from mirror_assets.orchestration.mirror_assets import LOADABLE, MirrorAssets
from mirror_assets.orchestration.runs import failing
from mirror_assets.source.access import Access
from mirror_assets.source.delta_rs import load_table

# Types beside pyarrow's, each with the package of its handler.
_MORE_TYPES = {
    "pandas.DataFrame": ("dagster_deltalake_pandas", "DeltaLakePandasTypeHandler"),
    "polars.DataFrame": ("dagster_deltalake_polars", "DeltaLakePolarsTypeHandler"),
    "polars.LazyFrame": ("dagster_deltalake_polars", "DeltaLakePolarsTypeHandler"),
}


class TableInputs(dg.IOManager):
    """Loads the Delta table of an asset as the type that the input is annotated with.

    .. code-block:: python

        @dg.asset(ins={"orders": dg.AssetIn(["shop", "orders_mirror"])})
        def revenue(orders: pa.Table) -> float: ...
    """

    def __init__(self, assets: MirrorAssets) -> None:
        """Load assets of this mirror; nothing is opened yet."""
        self._assets = assets

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:  # noqa: ARG002
        """Refuse: sources, mirrors and histories are written by others. Raises dagster.Failure."""
        raise dg.Failure(
            f"{context.asset_key.to_user_string()} can't be stored: this IO manager only loads tables of a mirror. Use "
            "another one for your asset."
        )

    def load_input(self, context: dg.InputContext) -> object:
        """Return the table at its newest version; the input's metadata `columns` selects columns."""
        wanted = context.dagster_type.typing_type
        with failing():
            kind, table = self._known[context.asset_key]
            access, handler = self._access(kind, table), _handler(wanted)
            columns = (context.definition_metadata or {}).get("columns")
            place = TableSlice(table.table, table.schema or "", columns=columns)
            connection = TableConnection(access.uri, dict(access.storage_options()), None)
            try:
                return handler.load_input(context, place, connection)
            except DeltaProtocolError:
                # Arrow's reader knows no deletion vectors and no column mapping; DataFusion's does.
                rows = ds.dataset(_query(load_table(access), columns))
        if wanted is ds.Dataset:
            return rows
        is_lazy = wanted.__name__ == "LazyFrame"
        return handler.from_arrow(rows if is_lazy else rows.scanner().to_reader(), wanted)

    @cached_property
    def _known(self) -> dict[dg.AssetKey, tuple[AssetKind, TableName]]:
        assets, tables = self._assets, self._assets.config.all_tables()
        return {
            assets.key(kind, table.name): (kind, table.name)
            for table in tables
            for kind in assets.kinds(table)
            if kind in LOADABLE
        }

    def _access(self, kind: AssetKind, table: TableName) -> Access:
        config = self._assets.config
        if kind is AssetKind.SOURCE:
            return source_log(config, config.table(table)).access
        made = asset_of_feature(config, config.table(table)) if kind is AssetKind.HISTORY else None
        if made is not None:
            return config.access(made.uri)
        status = open_mirror(config, open_zone(config.landing_zone)).table(table)
        if status is None:
            raise NOT_MIRRORED_YET(table=table)
        return config.access(status.location)


def _query(table: DeltaTable, columns: Sequence[str] | None) -> pa.Table:
    """Return these columns of the table, or all, with the types that Arrow's reader gives them."""
    schema = pa.schema(table.schema().to_arrow())
    names = list(columns or schema.names)
    listed = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    query = f"SELECT {listed} FROM rows"  # noqa: S608 names are quoted, and of the table's schema
    rows = pa.table(QueryBuilder().register("rows", table).execute(query).read_all())
    return rows.cast(pa.schema([schema.field(name) for name in names]))


def _handler(wanted: type) -> DeltalakeBaseArrowTypeHandler[object]:
    """Return dagster-deltalake's handler of the type. Raises SettingError for other types, and without its package."""
    arrow = DeltaLakePyArrowTypeHandler()
    if wanted in arrow.supported_types:
        return cast("DeltalakeBaseArrowTypeHandler[object]", arrow)
    name = f"{wanted.__module__.partition('.')[0]}.{getattr(wanted, '__name__', wanted)}"
    package, handler = _MORE_TYPES.get(name, ("", ""))
    with suppress(ImportError):
        if package:
            return cast("DeltalakeBaseArrowTypeHandler[object]", getattr(import_module(package), handler)())
    why = f": {package} is not installed" if package else ""
    install = f"pip install {package.replace('_', '-')}" if package else None
    raise INPUT_UNSUPPORTED(name=name, why=why, next_step=install)
