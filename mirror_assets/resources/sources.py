"""Source tables as a Dagster resource, on dagster-deltalake's: read without a JVM, never written."""

from __future__ import annotations

import dagster as dg
from dagster_deltalake import AzureConfig, DeltaTableResource, GcsConfig, LocalConfig, S3Config
from deltalake import DeltaTable
from pydantic import Field

from mirror_assets.landing.names import TableName
from mirror_assets.source.log import SourceLog
from mirror_assets.source.table_log import TableLog


class SourceTables(dg.ConfigurableResource[None]):
    """The source tables by their name in the mirror.

    .. code-block:: python

        SourceTables(uris={"sales.orders": "/lake/orders"}).log(TableName.parse("sales.orders")).state().version
    """

    uris: dict[str, str] = Field(description="Path or URI of each source, by the table's name in the mirror.")
    storage: AzureConfig | S3Config | LocalConfig | GcsConfig = Field(
        default_factory=LocalConfig, discriminator="provider", description="How to reach the store of the sources."
    )

    def load(self, table: TableName) -> DeltaTable:
        """The table at its newest version, opened by dagster-deltalake."""
        opened: DeltaTable = DeltaTableResource(url=self.uris[str(table)], storage_options=self.storage).load()
        return opened

    def log(self, table: TableName) -> SourceLog:
        """The table's log."""
        return SourceLog(self.uris[str(table)], self.storage.str_dict(), lambda: self.load(table))

    def table_log(self, table: TableName) -> TableLog:
        """The table's log as Direct Lake sees it."""
        return TableLog(self.uris[str(table)], self.storage.str_dict())
