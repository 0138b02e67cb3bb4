"""The table of a direct-lake command: by its address, or from mirror.yaml; and who still needs its old versions."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from mirror_assets.cli.direct_lake.request import Request
from mirror_assets.cli.output import note
from mirror_assets.config import Config, ConfigMissing, DirectLakeMode, TableSettings, TableUnknown, load_config
from mirror_assets.config.access import access_to
from mirror_assets.direct_lake.footers.footer_reader import FooterCache, FooterReader, cache_folder
from mirror_assets.direct_lake.guardrails.skus import Mode, Sku, sku_of
from mirror_assets.direct_lake.maintenance.bins import FileSizes, sizes_for
from mirror_assets.direct_lake.maintenance.plan_values import Dialect, MaintenanceInput, Unpublished, Worth
from mirror_assets.direct_lake.sql import quoted
from mirror_assets.direct_lake.table_snapshot import TableSnapshot
from mirror_assets.direct_lake.vacuum.requirements import Mirror, RetentionConsumers
from mirror_assets.landing.format import Manifest
from mirror_assets.pipeline.retention_consumers import frames_of, source_consumers
from mirror_assets.source.table_log import TableLog
from mirror_assets.storage.lake.address import LakeAddress


@dataclass(frozen=True)
class Subject:
    """A table and the request for it; `config` and `settings` are None where the table is named by its address."""

    request: Request
    log: TableLog
    config: Config | None = None
    settings: TableSettings | None = None

    @property
    def name(self) -> str:
        """The table as it was typed."""
        return self.request.table

    @property
    def sku(self) -> Sku | None:
        """The capacity whose limits count, from the command line or the settings. Raises sku_unknown."""
        name = self.request.sku or (self.settings and self.settings.direct_lake.sku)
        return sku_of(name) if name else None

    @property
    def mode(self) -> Mode:
        """The kind of Direct Lake, from the command line or the settings."""
        if self.request.mode is not None:
            return DirectLakeMode(self.request.mode.replace("-", "_")).kind
        return Mode.ONELAKE if self.settings is None else self.settings.direct_lake.mode.kind

    def consumers(self) -> RetentionConsumers:
        """Return the frames of command line and settings, and the mirror. Raises frame_refused, FramesUnreadable."""
        request = self.request
        named = frames_of(self.log, request.frame, request.export, request.model_table)
        if self.config is None or self.settings is None:
            return RetentionConsumers(named, retain_hours=request.retain_hours)
        known = source_consumers(self.config, self.settings, self.log, _manifest(self.config, self.name))
        return RetentionConsumers((*named, *known.frames), known.mirror, request.retain_hours)

    def snapshot(self, *, dictionaries: bool = True) -> TableSnapshot:
        """Return the table as it is now; facts of its footers are cached where the request says."""
        root = self.request.cache or cache_folder()
        cache = None if self.request.no_cache else FooterCache.of(root, self.log.uri)
        return TableSnapshot(
            self.name, self.log, FooterReader(self.log.uri, self.log.files, cache, dictionaries), time.time()
        )

    def maintenance(self, mirror: Mirror | None) -> MaintenanceInput:
        """Return what a maintenance plan depends on, without what footers and the VACUUM guard add."""
        fabric, sku = self.request.fabric, self.sku
        return MaintenanceInput(
            dialect=Dialect.DELTA if fabric is None else Dialect.FABRIC,
            fabric=fabric,
            table=None if fabric is None else ".".join(quoted(part) for part in (fabric.schema, fabric.name) if part),
            sizes=self._sizes(),
            worth=Worth(max_files=None if sku is None else sku.files),
            unpublished=None if mirror is None else self._unpublished(mirror),
        )

    def _sizes(self) -> FileSizes:
        """Return the sizes of the settings; else Fabric's, which depend on the table's size, or Delta's."""
        if self.settings is not None:
            return self.settings.maintenance.sizes
        if self.request.fabric is None:
            return FileSizes()
        return sizes_for(sum(file.bytes for file in self.log.snapshot().files))

    def _unpublished(self, mirror: Mirror) -> Unpublished:
        return Unpublished(mirror.covered, self.log.newest(), f"mirror-assets run --table {self.name}")


def subject_of(request: Request) -> Subject:
    """Open the table of the request. Unless it is a path, raises TableUnknown and what reading mirror.yaml raises."""
    if request.is_path:
        address = _address(request.table)
        return Subject(request, TableLog(address, access_to(address, ())))
    try:
        config = load_config(request.config)
        settings = config.table(request.table)
    except (ConfigMissing, TableUnknown):
        if Path(request.table).is_dir():
            note(f"{request.table} is taken for a name of mirror.yaml; for the folder, write ./{request.table}")
        raise
    place = config.locate(settings.source)
    return Subject(request, TableLog(place.uri, place.access), config, settings)


def _address(path: str) -> str:
    """Make a path of this machine absolute, for statements are run elsewhere; put an address in Spark's spelling."""
    if not urlsplit(path).scheme:
        return str(Path(path).absolute())
    try:
        return LakeAddress.parse(path).uri
    except ValueError:
        return path  # opening it tells


def _manifest(config: Config, name: str) -> Manifest | None:
    """Read what has landed. Raises ManifestCorrupt."""
    from mirror_assets.composition import Project  # a table that is named by its address needs no landing zone

    return Project.of(config).table(config.table(name)).manifest()
