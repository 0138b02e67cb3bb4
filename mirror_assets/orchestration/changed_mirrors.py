"""The events of mirrored tables: one for each table that has changed, none while nothing changes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import dagster as dg

from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import TableName
from mirror_assets.monitoring import MonitoredTable
from mirror_assets.orchestration.asset_names import AssetKind
from mirror_assets.orchestration.assets import mirror_event
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.slice_metadata import DATA_VERSION_TAG


@dataclass(frozen=True)
class MirrorMark:
    """What is new when it changes: state, processed rows, and epoch, version and columns, empty while unknown.

    It is the data version of a materialization, so a new process knows what was recorded.
    """

    state: str
    processed_rows: int
    contents: str = ""

    def __str__(self) -> str:
        return f"{self.state} {self.processed_rows} {self.contents}".rstrip()

    @classmethod
    def parse(cls, text: str) -> MirrorMark | None:
        """Return the mark that the text is, or None."""
        state, _, rest = text.partition(" ")
        rows, _, contents = rest.partition(" ")
        return cls(state, int(rows), contents) if rows.isdecimal() else None

    @classmethod
    def of(cls, status: MonitoredTable, manifest: Manifest | None, before: MirrorMark | None) -> MirrorMark:
        """Return the table's mark; its contents are those of `before` while the mirror has not applied everything."""
        contents = before.contents if before is not None else ""
        if manifest is not None and manifest.loading is None and status.has_applied(manifest):
            columns = repr([(column.name, column.type) for column in manifest.columns])
            digest = hashlib.sha256(columns.encode()).hexdigest()[:8]
            contents = f"{manifest.epoch}.{manifest.covered} {digest}"
        return cls(status.state.value, status.processed_rows, contents)


class ChangedMirrors:
    """Makes the events of mirrored tables that have changed since their newest materialization in Dagster."""

    def __init__(self, instance: dg.DagsterInstance, assets: MirrorAssets) -> None:
        """Read the marks of the tables' newest materializations, by one query."""
        self._assets, self._marks = assets, dict[TableName, MirrorMark]()
        names = {assets.key(AssetKind.MIRROR, name): name for name in assets.config.names}
        for key, entry in instance.get_latest_materialization_events(list(names)).items():
            newest = entry.asset_materialization if entry else None
            mark = MirrorMark.parse((newest.tags or {}).get(DATA_VERSION_TAG, "")) if newest else None
            if mark is not None:
                self._marks[names[key]] = mark

    def event(self, status: MonitoredTable | None, manifest: Manifest | None) -> dg.AssetMaterialization | None:
        """Return the event of a table that has changed; `manifest` is what has landed, if that could be read."""
        if status is None:
            return None
        before = self._marks.get(status.name)
        mark = MirrorMark.of(status, manifest, before)
        return None if mark == before else mirror_event(self._assets, status, manifest, str(mark))
