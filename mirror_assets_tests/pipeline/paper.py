"""A table of which there is only the log, and a landing zone that starts no Spark: for plans, ranges and clocks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from mirror_assets.config.load import parse_config
from mirror_assets.config.model import Config
from mirror_assets.landing.format import Column
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.context import TableContext
from mirror_assets.source.log import DeltaLog
from mirror_assets.zones import LocalStore
from mirror_assets_tests.landing.staging import cover
from mirror_assets_tests.source.handmade import (
    PROTOCOL,
    Action,
    column,
    commit_file,
    file_action,
    info,
    metadata_action,
    schema_string,
    write_commit,
)

TABLE = TableName("shop", "orders")
FEED = {"delta.enableChangeDataFeed": "true"}
COLUMNS = (Column(name="id", type="bigint"), Column(name="name", type="string"))
SCHEMA = schema_string(column("id"), column("name", "string"))


@dataclass(frozen=True)
class Paper:
    """The table's log and settings under one folder."""

    root: Path
    settings: str = ""

    @property
    def lake(self) -> Path:
        """The source."""
        return self.root / "lake"

    @property
    def config(self) -> Config:
        """Its settings, with the table's own."""
        text = (
            f"landing_zone: {{path: ./landing}}\ntables:\n  {TABLE}:\n    source: ./lake\n    keys: [id]\n"
            f"    {self.settings}\n"
        )
        return parse_config(text.encode(), self.root / "mirror.yaml", {})

    @property
    def context(self) -> TableContext:
        """The table's work."""
        config = self.config
        return TableContext(config, config.table(TABLE), DeltaLog(str(self.lake)), LocalStore(self.zone), _no_spark)

    @property
    def zone(self) -> Path:
        """The landing zone's folder."""
        return self.root / "landing"

    def create(self, made: float = 0.0, **properties: str) -> None:
        """Version 0: the table, its feed on unless `properties` say otherwise."""
        configuration = FEED | {name.replace("__", "."): value for name, value in properties.items()}
        self.commit(0, made, PROTOCOL, metadata_action(SCHEMA, **configuration), operation="CREATE TABLE")

    def commit(self, version: int, made: float, *actions: Action, operation: str = "WRITE") -> None:
        """A commit whose file was written at `made`; of ten rows, unless it has actions of its own."""
        rows = actions or (file_action("add", f"{version}.parquet"),)
        if not actions:
            (self.lake / f"{version}.parquet").touch()
        write_commit(self.lake, version, [info(operation, timestamp=int(made * 1000)), *rows])
        os.utime(commit_file(self.lake, version), (made, made))

    def create_waiting(self) -> None:
        """Create the table: version 0 has landed, two commits wait."""
        self.create()
        self.cover(0)
        self.commit(1, 1)
        self.commit(2, 2)

    def cover(self, version: int) -> None:
        """Say in the manifest that everything up to the version has landed."""
        state = self.context.log.state(version)
        cover(LocalStore(self.zone), TABLE, version, state.table_id, state.schema_string, COLUMNS)


def _no_spark() -> NoReturn:
    raise AssertionError("nothing here needs Spark")
