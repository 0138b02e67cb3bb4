"""A catalog-managed table: an ordinary Delta table, whose commits a catalog ratifies into a folder of its own."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets_tests.source.handmade import commit_file
from mirror_assets_tests.worlds.histories.table import LogState, actions_in
from mirror_assets_tests.worlds.unity.server import LoopbackUnity, Ratified, Table

_READING = ("deletionVectors", "v2Checkpoint", "vacuumProtocolCheck")
_IN_COMMIT = "delta.enableInCommitTimestamps"
# Long after the time of any file, and an hour between two commits: file times mean nothing.
_FIRST_MS, _HOUR_MS = 4_000_000_000_000, 3_600_000


class ManagedTable:
    """The table at `path`, registered in `unity`, with the commits of `writer`, an ordinary table, that are ratified.

    Commits before `since` are those of a path: then the table becomes catalog-managed. Data files are links to those of
    the writer.
    """

    def __init__(
        self,
        unity: LoopbackUnity,
        name: str,
        writer: Path,
        path: Path,
        since: int = 0,
        feature: str = "catalogManaged",
    ) -> None:
        self.writer, self.path, self._unity, self._name = writer, path, unity, name
        self._since, self._feature, self._newest = since, feature, -1
        self.table: Table = unity.add(name, str(path), {})
        self.table.table_type = "MANAGED"

    def ratify(self, up_to: int | None = None) -> None:
        """Take over the commits that the writer has made, each as a staged file that the catalog ratifies."""
        last = LogState.of(self.writer).version if up_to is None else up_to
        self._link_files()
        for version in range(self._newest + 1, last + 1):
            data = self._transformed(version)
            if version < self._since or version == self._since > 0:
                self._write(commit_file(self.path, version), data)
                if version == self._since:
                    self._manage(version)
            else:
                self._stage(version, data)
            self._newest = version

    def publish(self, up_to: int, *, forget: bool = True, clean: bool = False) -> None:
        """Publish the staged commits; `forget`: the catalog knows it, `clean`: their staged files are deleted."""
        for commit in self.table.ratified:
            if commit.version <= up_to:
                target = commit_file(self.path, commit.version)
                if not target.exists():
                    self._write(target, self.staged(commit).read_bytes())
                if clean:
                    self.staged(commit).unlink(missing_ok=True)
        if forget:
            self.table.ratified = tuple(one for one in self.table.ratified if one.version > up_to)

    def staged(self, commit: Ratified) -> Path:
        return self.path / "_delta_log" / "_staged_commits" / commit.file_name

    def copy_checkpoints(self) -> None:
        """Take over the writer's checkpoints up to the newest ratified version."""
        for found in (self.writer / "_delta_log").glob("*.checkpoint*"):
            target = self.path / "_delta_log" / found.name
            if target.exists() or found.suffix not in (".parquet", ".json") or int(found.name[:20]) > self._newest:
                continue
            if found.suffix == ".json":
                self._write(target, _lines(self._changed(one) for one in actions_in(found)))
            else:
                self._copy_parquet(found, target)
        for sidecar in (self.writer / "_delta_log" / "_sidecars").glob("*.parquet"):
            target = self.path / "_delta_log" / "_sidecars" / sidecar.name
            if not target.exists():
                self._write(target, sidecar.read_bytes())

    def time_ms(self, version: int) -> int:
        """The version's in-commit timestamp."""
        return _FIRST_MS + version * _HOUR_MS

    def _manage(self, version: int) -> None:
        self.table.properties = {f"delta.feature.{self._feature}": "supported"}
        self.table.latest = version

    def _stage(self, version: int, data: bytes) -> None:
        file = self.path / "_delta_log" / "_staged_commits" / f"{version:020d}.{uuid.uuid4()}.json"
        self._write(file, data)
        commit = Ratified(version, self.time_ms(version), file.name, len(data), file.stat().st_mtime_ns // 1_000_000)
        if version == 0:
            self._manage(version)
        self.table = replace(self.table, ratified=(*self.table.ratified, commit), latest=version)
        self._unity.tables[self._name] = self.table

    def _transformed(self, version: int) -> bytes:
        """A commit of the writer, with the features of a managed table, and its in-commit timestamp."""
        found = actions_in(commit_file(self.writer, version))
        info: dict[str, Any] = next((action["commitInfo"] for action in found if "commitInfo" in action), {})
        actions = [action for action in found if "commitInfo" not in action]
        if version == self._since > 0:
            state = LogState.of(self.writer, up_to=version)
            actions = [one for one in actions if not one.keys() & {"protocol", "metaData"}]
            actions += [{"protocol": state.protocol}, {"metaData": state.metadata}]
        if version >= self._since:
            info = {**info, "inCommitTimestamp": self.time_ms(version)}
            actions = [self._changed(action) for action in actions]
        return _lines([{"commitInfo": info}, *actions])

    def _changed(self, action: dict[str, Any]) -> dict[str, Any]:
        if protocol := action.get("protocol"):
            reading = {*(protocol.get("readerFeatures") or ()), *_READING, self._feature}
            writing = {*(protocol.get("writerFeatures") or ()), *reading, "inCommitTimestamp"}
            if protocol.get("minWriterVersion", 0) < 7:
                writing |= {"appendOnly", "invariants", "changeDataFeed", "checkConstraints", "generatedColumns"}
            changed = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": sorted(reading)}
            return {"protocol": {**changed, "writerFeatures": sorted(writing)}}
        if metadata := action.get("metaData"):
            named = dict(metadata["configuration"])
            configuration = {name: value for name, value in named.items() if "inCommit" not in name}
            configuration[_IN_COMMIT] = "true"
            if self._since:
                configuration["delta.inCommitTimestampEnablementVersion"] = str(self._since)
                configuration["delta.inCommitTimestampEnablementTimestamp"] = str(self.time_ms(self._since))
            return {"metaData": {**metadata, "configuration": configuration}}
        return action

    def _copy_parquet(self, found: Path, target: Path) -> None:
        read = pq.read_table(found)
        rows = read.to_pylist()
        for row in rows:
            for kind in ("protocol", "metaData"):
                if row.get(kind) is not None:
                    row[kind] |= self._changed({kind: row[kind]})[kind]
        pq.write_table(pa.Table.from_pylist(rows, read.schema), target)

    def _link_files(self) -> None:
        for found in self.writer.rglob("*"):
            target = self.path / found.relative_to(self.writer)
            if found.is_file() and "_delta_log" not in found.parts and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                os.link(found, target)

    @staticmethod
    def _write(file: Path, data: bytes) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def _lines(actions: Iterable[dict[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(action)}\n" for action in actions).encode()
