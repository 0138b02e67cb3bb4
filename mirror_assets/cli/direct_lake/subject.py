"""The table that a command is about: by its address, or as mirror.yaml has it, with who reads it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from mirror_assets.cli.direct_lake.arguments import Request
from mirror_assets.cli.output import note
from mirror_assets.config import Config, ConfigMissing, DirectLakeMode, TableSettings, TableUnknown, load_config
from mirror_assets.direct_lake.footers.footer_reader import FooterCache, FooterReader, cache_folder
from mirror_assets.direct_lake.guardrails.skus import Mode, Sku, sku_of
from mirror_assets.direct_lake.maintenance.bins import FileSizes, sizes_for
from mirror_assets.direct_lake.maintenance.plan_values import Dialect, MaintenanceInput, Unpublished, Worth
from mirror_assets.direct_lake.sql import quoted
from mirror_assets.direct_lake.table_snapshot import TableSnapshot
from mirror_assets.direct_lake.vacuum.requirements import Mirror, RetentionConsumers
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.retention_consumers import frames_of, source_readers
from mirror_assets.source.table_log import TableLog


@dataclass(frozen=True)
class Subject:
    """A table, and what was asked of it; `settings` are those of mirror.yaml, None for one that is not in it."""

    request: Request
    log: TableLog
    config: Config | None = None
    settings: TableSettings | None = None

    @property
    def name(self) -> str:
        """As it was named."""
        return self.request.table

    @property
    def sku(self) -> Sku | None:
        """The capacity that counts. Raises SkuUnknown."""
        told = self.request.sku or (self.settings and self.settings.direct_lake.sku)
        return sku_of(told) if told else None

    @property
    def mode(self) -> Mode:
        """The kind of Direct Lake."""
        if self.request.mode is not None:
            return DirectLakeMode(self.request.mode.replace("-", "_")).kind
        return Mode.ONELAKE if self.settings is None else self.settings.direct_lake.mode.kind

    def readers(self) -> RetentionConsumers:
        """Frames of the command line, and whom mirror.yaml knows of. Raises FrameRefused, FramesUnreadable."""
        requested = self.request
        named = frames_of(self.log, requested.frame, requested.export, requested.model_table)
        if self.config is None or self.settings is None:
            return RetentionConsumers(named, retain_hours=requested.retain_hours)
        known = source_readers(self.config, self.settings, self.log, _manifest(self.config, self.settings))
        return RetentionConsumers((*named, *known.frames), known.mirror, requested.retain_hours)

    def look(self, *, dictionaries: bool = True) -> TableSnapshot:
        """A look at the table now, with the cache of footers that was asked for."""
        root = self.request.cache or cache_folder()
        cache = None if self.request.no_cache else FooterCache.of(root, self.log.uri)
        return TableSnapshot(
            self.name, self.log, FooterReader(self.log.uri, self.log.files, cache, dictionaries), time.time()
        )

    def maintenance(self, mirror: Mirror | None) -> MaintenanceInput:
        """What a plan of maintenance goes by, but for what footers and the guard find."""
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
        """Those of the settings; else Fabric's, which follow the table's size, or Delta's."""
        if self.settings is not None:
            return self.settings.maintenance.sizes
        if self.request.fabric is None:
            return FileSizes()
        return sizes_for(sum(file.bytes for file in self.log.snapshot().files))

    def _unpublished(self, mirror: Mirror) -> Unpublished:
        return Unpublished(mirror.covered, self.log.newest(), f"mirror-assets run --table {self.name}")


def subject_of(request: Request) -> Subject:
    """The table of the request. Raises TableUnknown and what reading mirror.yaml raises, unless it is a path."""
    if request.is_path:
        return Subject(request, TableLog(_address(request.table)))
    try:
        config = load_config(request.config)
        settings = config.table(request.table)
    except (ConfigMissing, TableUnknown):
        if Path(request.table).is_dir():
            note(f"{request.table} is taken for a name of mirror.yaml; for the folder, write ./{request.table}")
        raise
    return Subject(request, TableLog(settings.source), config, settings)


def _address(path: str) -> str:
    """Paths of this machine are whole in statements that are run elsewhere."""
    return path if urlsplit(path).scheme else str(Path(path).absolute())


def _manifest(config: Config, table: TableSettings) -> Manifest | None:
    """What has landed. Raises ManifestCorrupt."""
    from mirror_assets.composition import open_zone  # it knows Spark's settings, too, which take a second to import

    current = drive(read_manifest(table.name), open_zone(config.landing_zone))
    return current.manifest if current else None
