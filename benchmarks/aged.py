"""A table of any age without Spark: its landing zone, its source's log, and the Dagster instance that knows it."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from unittest.mock import patch

import dagster as dg

from benchmarks.synthetic_log import Log
from mirror_assets.config.load import parse_config
from mirror_assets.config.model import Config
from mirror_assets.definitions import build_definitions
from mirror_assets.landing.format import (
    ChangeCounts,
    CheckVerdict,
    Column,
    Manifest,
    MarkerCounts,
    SliceKind,
    SliceRecord,
    StagedPart,
    encode,
)
from mirror_assets.landing.names import AttemptFolder, SliceKey, TableName, attempt_id
from mirror_assets.landing.publish import publish
from mirror_assets.landing.state import CommitPosition, next_position, read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration.mirror_assets import MirrorAssets, partitions_name
from mirror_assets.orchestration.resources import resources
from mirror_assets.orchestration.translator import AssetKind, asset_key
from mirror_assets.pipeline.check_slice import BLOCKING_CHECKS
from mirror_assets.pipeline.context import TableContext
from mirror_assets.source.commits import SourceState
from mirror_assets.source.log import DeltaLog
from mirror_assets.zones import LocalStore, Store
from mirror_assets_tests.orchestration.mirrors import evaluate

TABLE = TableName("bench", "aged")
_PART = b"one small part of a slice"
_COLUMNS = (Column(name="id", type="bigint"),)
_REPLICATOR = "replicator"


@dataclass(frozen=True)
class AgedTable:
    """A table of `generations` slices, one file and one commit of the source each; `ahead` more commits wait.

    The service has deleted every file but the last.
    """

    root: Path
    log: Log
    source: SourceState
    generations: int

    @classmethod
    def make(cls, root: Path, generations: int, ahead: int) -> AgedTable:
        """The table, landed by the publisher itself; nothing is made durable, which takes most of its time."""
        log = Log(root / "lake", generations + ahead - 1)
        made = cls(root, log, DeltaLog(log.uri).state(), generations)
        with patch.object(os, "fsync", lambda _: None):
            for number in range(1, generations + 1):
                record = made.stage(made.disk, made.position(made.disk))
                drive(publish(TABLE, record, tuple(BLOCKING_CHECKS)), made.disk)
                made.disk.delete(TABLE.landing_file(number - 1))
        return made

    @property
    def disk(self) -> LocalStore:
        """The landing zone on disk."""
        return LocalStore(self.root / "landing")

    def config(self, zone: str = "path: ./landing") -> Config:
        """Its settings, with this landing zone."""
        text = (
            f"landing_zone: {{{zone}}}\nautomation: {{mode: batch}}\n"
            f"tables:\n  {TABLE}: {{source: {self.log.uri}, keys: [id]}}\n"
        )
        return parse_config(text.encode(), self.root / "mirror.yaml", os.environ)

    def context(self, store: Store) -> TableContext:
        """The table's work on a landing zone."""
        config = self.config()
        return TableContext(config, config.table(TABLE), DeltaLog(self.log.uri), store, _no_spark)

    def position(self, store: Store) -> CommitPosition:
        """What the next slice is staged as."""
        current = drive(read_manifest(TABLE), store)
        return next_position(current.manifest if current else None, epoch=1, incarnation="0" * 32)

    def stage(self, store: Store, position: CommitPosition) -> SliceRecord:
        """The next commit's slice, staged and passed by all checks."""
        attempt = attempt_id(time.time_ns() // 1_000_000, os.urandom(10))
        folder, name = AttemptFolder(TABLE, position.generation, attempt), "part-00000.parquet"
        etag, rows = store.create(folder.part(name), _PART), MarkerCounts(inserts=1)
        digest = hashlib.sha256(_PART).hexdigest()
        part = StagedPart(name=name, etag=etag, bytes=len(_PART), sha256=digest, markers=rows)
        record = self._record(position, attempt, part)
        store.create(folder.record, encode(record))
        return record

    def ticker(self, config: Config, instance: dg.DagsterInstance) -> Callable[[], None]:
        """A tick of every sensor that looks after the table, in a code server that goes on from tick to tick."""
        definitions = build_definitions(config)
        looking = (sensor for sensor in definitions.sensors or () if isinstance(sensor, dg.SensorDefinition))
        names = [sensor.name for sensor in looking if sensor.name != _REPLICATOR]

        def tick() -> None:
            for name in names:
                given = resources(MirrorAssets(config))
                context = dg.build_sensor_context(instance=instance, definitions=definitions, resources=given)
                result = evaluate(definitions.resolve_sensor_def(name), context)
                assert isinstance(result, dg.SkipReason), result  # noqa: S101 a figure of a busy tick would mislead

        return tick

    def instance(self) -> dg.DagsterInstance:
        """A Dagster instance that has seen every slice."""
        instance, name = dg.DagsterInstance.ephemeral(), partitions_name(asset_key(AssetKind.LANDING, TABLE))
        keys = [str(SliceKey(1, version, version)) for version in range(self.generations)]
        instance.add_dynamic_partitions(name or "", keys)
        return instance

    def _record(self, position: CommitPosition, attempt: str, part: StagedPart) -> SliceRecord:
        first = position.covered + 1
        return SliceRecord(
            table=str(TABLE),
            slice=SliceKey(1, first, first),
            kind=SliceKind.CHANGES if first else SliceKind.SNAPSHOT,
            epoch=position.epoch,
            generation=position.generation,
            attempt=attempt,
            incarnation=position.incarnation,
            first_number=position.first_number,
            source_table_id=self.source.table_id,
            source_schema=self.source.schema_string,
            keys=("id",),
            columns=_COLUMNS,
            first_commit_ms=None,
            last_commit_ms=None,
            read=ChangeCounts(insert=1),
            parts=(part,),
            verdicts=tuple(CheckVerdict(check=check, passed=True, etags=(part.etag,)) for check in BLOCKING_CHECKS),
        )


def manifest_of(store: Store) -> Manifest:
    """The table's manifest."""
    current = drive(read_manifest(TABLE), store)
    assert current is not None  # noqa: S101 it has landed
    return current.manifest


def _no_spark() -> NoReturn:
    raise AssertionError("nothing here needs Spark")
