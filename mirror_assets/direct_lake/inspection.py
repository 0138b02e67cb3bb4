"""The direct-lake commands: open the table, inspect it, print the result, and return the exit code."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import click

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import note, show_json
from mirror_assets.config import Config, ConfigMissing, DirectLakeMode, TableSettings, TableUnknown, load_config
from mirror_assets.config.access import access_to
from mirror_assets.direct_lake.consumers import named_frames, source_consumers
from mirror_assets.direct_lake.errors import PicturesUnwritable
from mirror_assets.direct_lake.footer_reader import FooterCache, FooterReader, cache_folder
from mirror_assets.direct_lake.guardrails import (
    MODE_NAMES,
    SOURCE,
    SOURCE_DATE,
    CapacityFit,
    FitVerdict,
    Guardrails,
    Sku,
    sku_of,
)
from mirror_assets.direct_lake.maintenance_plan import MaintenanceInput
from mirror_assets.direct_lake.pictures import framing_bars, use_of_limits
from mirror_assets.direct_lake.printing import show_guardrails, show_report, show_vacuum
from mirror_assets.direct_lake.report import InspectedTable, ReportOptions, table_report
from mirror_assets.direct_lake.vacuum import RetentionConsumers, VacuumPlan, plan_vacuum
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.sql_names import quoted
from mirror_assets.storage.lake.address import LakeAddress


@dataclass(frozen=True)
class InspectionRequest:
    """The arguments of a direct-lake command; options that the command doesn't have keep their defaults."""

    table: str
    config: Path | None = None
    frame: Sequence[str] = ()
    export: Sequence[Path] = ()
    model_table: str | None = None
    retain_hours: float | None = None
    sku: str | None = None
    mode: str | None = None
    columns: tuple[str, ...] = ()
    fabric: str | None = None
    pictures: Path | None = None
    cache: Path | None = None
    no_cache: bool = False

    def __post_init__(self) -> None:
        """Raise click.UsageError for options that need another one."""
        if self.model_table is not None and not self.export:
            raise click.UsageError("--model-table requires --export")


@dataclass(frozen=True)
class _Subject:
    """The table of a request; `config` and `settings` are None if the table is named by its address."""

    request: InspectionRequest
    log: DeltaLog
    config: Config | None = None
    settings: TableSettings | None = None

    @property
    def sku(self) -> Sku | None:
        """The capacity in the command line or the settings. Raises sku_unknown."""
        name = self.request.sku or (self.settings and self.settings.direct_lake.sku)
        return sku_of(name) if name else None

    @property
    def mode(self) -> DirectLakeMode:
        """The kind of Direct Lake in the command line or the settings."""
        if self.request.mode is not None:
            return DirectLakeMode(self.request.mode.replace("-", "_"))
        return DirectLakeMode.ONELAKE if self.settings is None else self.settings.direct_lake.mode

    def consumers(self) -> RetentionConsumers:
        """Return the frames of command line and settings, and the mirror. Raises frame_refused, FramesUnreadable."""
        request = self.request
        named = named_frames(self.log, request.frame, request.export, request.model_table)
        if self.config is None or self.settings is None:
            return RetentionConsumers(named, retain_hours=request.retain_hours)
        from mirror_assets.composition import Project  # a table that is named by its address needs no landing zone

        manifest = Project.of(self.config).table(self.settings).manifest()
        known = source_consumers(self.config, self.settings, self.log, manifest)
        return RetentionConsumers((*named, *known.frames), known.mirror, request.retain_hours)

    def inspected(self, *, dictionaries: bool = True) -> InspectedTable:
        """Return the table as it is now."""
        request, log = self.request, self.log
        cache = None if request.no_cache else FooterCache.of(request.cache or cache_folder(), log.uri)
        return InspectedTable(request.table, log, FooterReader(log.uri, log.files, cache, dictionaries), time.time())


def _opened(request: InspectionRequest) -> _Subject:
    """Open the table. Unless it is a path, raises TableUnknown and what reading mirror.yaml raises."""
    name = request.table
    if "/" in name or name.startswith("."):  # names in mirror.yaml have no slash and don't begin with a dot
        address = str(Path(name).absolute())  # statements may be run in another folder
        if urlsplit(name).scheme:
            try:
                address = LakeAddress.parse(name).uri
            except ValueError:
                address = name  # opening it raises an error with the reason
        return _Subject(request, DeltaLog(address, access_to(address, ())))
    try:
        config = load_config(request.config)
        settings = config.table(name)
    except (ConfigMissing, TableUnknown):
        if Path(name).is_dir():
            note(f"{name} is taken for a name of mirror.yaml; for the folder, write ./{name}")
        raise
    place = config.locate(settings.source)
    return _Subject(request, DeltaLog(place.uri, place.access), config, settings)


def report(request: InspectionRequest, *, as_json: bool) -> Exit:
    """Print the whole report, and draw its pictures if a folder for them is given."""
    subject = _opened(request)
    sku, mode, consumers = subject.sku, subject.mode, subject.consumers()
    in_fabric = None if request.fabric is None else ".".join(quoted(part) for part in request.fabric.split("."))
    maintenance = MaintenanceInput(
        table=in_fabric,
        vorder=in_fabric is not None,
        max_files=None if sku is None else sku.files,
    )
    found = table_report(subject.inspected(), ReportOptions(consumers, request.columns, maintenance))
    if as_json:
        show_json(
            [vars(found) | {"guardrails": _guardrails(found.guardrails, sku, mode), "vacuum": _vacuum(found.vacuum)}]
        )
    else:
        show_report(found, sku, mode)
    if request.pictures is not None:
        pictures = {
            "use_of_limits.png": use_of_limits(found.guardrails.table),
            "framing.png": framing_bars(found.framing, found.name),
        }
        try:
            request.pictures.mkdir(parents=True, exist_ok=True)
            for name, png in pictures.items():
                (request.pictures / name).write_bytes(png)
        except OSError as error:
            raise PicturesUnwritable(str(request.pictures), error.strerror or str(error)) from error
        note(f"drawn in {request.pictures}: {', '.join(pictures)}")
    return Exit.FINE


def vacuum_plan(request: InspectionRequest, *, as_json: bool) -> Exit:
    """Print what VACUUM would delete; fail if a reader needs one of the files. Deletes nothing."""
    subject = _opened(request)
    consumers = subject.consumers()
    plan = plan_vacuum(subject.log, time.time(), consumers.frames, consumers.mirror, consumers.retain_hours)
    if as_json:
        show_json([_vacuum(plan)])
    else:
        show_vacuum(plan, request.table)
    return Exit.FINE if plan.is_safe else Exit.FAILED


def guardrails(request: InspectionRequest, *, as_json: bool) -> Exit:
    """Print which capacities a table fits into; fail if it exceeds a limit of the chosen one."""
    subject = _opened(request)
    sku, mode = subject.sku, subject.mode
    found = subject.inspected(dictionaries=False).guardrails
    if as_json:
        show_json([_guardrails(found, sku, mode)])
    else:
        show_guardrails(found, sku, mode)
    is_over = sku is not None and found.table.into(sku).verdict is FitVerdict.OVER
    return Exit.FAILED if is_over else Exit.FINE


def _vacuum(plan: VacuumPlan) -> dict[str, object]:
    return {"is_safe": plan.is_safe, "deleted_bytes": plan.deleted_bytes, "plan": plan}


def _guardrails(found: Guardrails, sku: Sku | None, mode: DirectLakeMode) -> dict[str, object]:
    """Return the guardrails of the capacity, or of all, and the source of their limits."""

    def fitting(one: CapacityFit) -> dict[str, object]:
        fits = one.fits if sku is None else (one.into(sku),)
        return {
            "figures": one.figures,
            "smallest": one.smallest.name if one.smallest else None,
            "fits": [{"sku": x.sku.name, "verdict": x.verdict, "days_left": x.days_left, "uses": x.uses} for x in fits],
        }

    table, mirror = fitting(found.table), fitting(found.mirror)
    return {"source": SOURCE, "source_date": SOURCE_DATE, "mode": MODE_NAMES[mode], "table": table, "mirror": mirror}
