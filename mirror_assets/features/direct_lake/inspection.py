"""The direct-lake commands: open the table, inspect it, print the result, and return the exit code."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

import click

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import note, show_json
from mirror_assets.config.errors import CONFIG_MISSING, TABLE_UNKNOWN
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import SettingError
from mirror_assets.features.direct_lake.calculated import CalculatedColumn
from mirror_assets.features.direct_lake.consumers import named_frames, source_consumers
from mirror_assets.features.direct_lake.direct_lake_settings import DirectLakeMode, DirectLakeTable
from mirror_assets.features.direct_lake.footer_reader import FooterReader, cache_folder
from mirror_assets.features.direct_lake.guardrails import (
    MODE_NAMES,
    SOURCE,
    SOURCE_DATE,
    CapacityFit,
    FitVerdict,
    Guardrails,
    Sku,
    sku_of,
)
from mirror_assets.features.direct_lake.printing import show_guardrails, show_report, show_vacuum
from mirror_assets.features.direct_lake.report import InspectedTable, table_report
from mirror_assets.features.direct_lake.vacuum import RetentionConsumers, VacuumPlan, plan_vacuum
from mirror_assets.lakes.access import access_to
from mirror_assets.lakes.lake_store import LakeAddress
from mirror_assets.source.log import DeltaLog
from mirror_assets.sql_names import quoted


@dataclass(frozen=True)
class Inspection:
    """A direct-lake command's table and options; options that the command doesn't have keep their defaults."""

    table: str
    config: Path | None = None
    frame: tuple[str, ...] = ()
    export: tuple[Path, ...] = ()
    model_table: str | None = None
    retain_hours: float | None = None
    sku: Sku | None = None
    mode: str | None = None
    columns: tuple[str, ...] = ()
    calculated: tuple[CalculatedColumn, ...] = ()
    fabric: str | None = None
    cache: Path | None = None
    no_cache: bool = False

    def __post_init__(self) -> None:
        """Raise click.UsageError for options that need another one."""
        if self.model_table is not None and not self.export:
            raise click.UsageError("--model-table requires --export")

    def report(self, *, as_json: bool) -> Exit:
        """Print the whole report."""
        sku, in_fabric = self._capacity, self.fabric and ".".join(map(quoted, self.fabric.split(".")))
        found = table_report(
            self._inspected(),
            self._consumers(),
            retain_hours=self.retain_hours,
            columns=self.columns,
            calculated=self.calculated,
            fabric_name=in_fabric,
            max_files=sku.files if sku else None,
        )
        if as_json:
            guardrails = _guardrails(found.guardrails, sku, self._mode)
            show_json([vars(found) | {"guardrails": guardrails, "vacuum": _vacuum(found.vacuum)}])
        else:
            show_report(found, sku, self._mode)
        return Exit.FINE

    def vacuum_plan(self, *, as_json: bool) -> Exit:
        """Print what VACUUM would delete; fail if a reader needs one of the files. Deletes nothing."""
        plan = plan_vacuum(self._log, time.time(), *self._consumers(), self.retain_hours)
        if as_json:
            show_json([_vacuum(plan)])
        else:
            show_vacuum(plan, self.table)
        return Exit.FINE if plan.is_safe else Exit.FAILED

    def guardrails(self, *, as_json: bool) -> Exit:
        """Print which capacities a table fits into; fail if it exceeds a limit of the chosen one."""
        sku, found = self._capacity, self._inspected(dictionaries=False).guardrails
        if as_json:
            show_json([_guardrails(found, sku, self._mode)])
        else:
            show_guardrails(found, sku, self._mode)
        is_over = sku is not None and found.table.into(sku).verdict is FitVerdict.OVER
        return Exit.FAILED if is_over else Exit.FINE

    @cached_property
    def _configured(self) -> tuple[Config, TableSettings] | None:
        """The table in mirror.yaml; None if it is named by its address. Raises what reading mirror.yaml raises."""
        if "/" in self.table or self.table.startswith("."):  # names in mirror.yaml have no slash, and no dot first
            return None
        try:
            config = load_config(self.config)
            return config, config.table(self.table)
        except SettingError as error:
            if error.row in (CONFIG_MISSING, TABLE_UNKNOWN) and Path(self.table).is_dir():
                note(f"{self.table} is taken for a name of mirror.yaml; for the folder, write ./{self.table}")
            raise

    @cached_property
    def _log(self) -> DeltaLog:
        if self._configured is not None:
            config, settings = self._configured
            place = config.locate(settings.source)
            return DeltaLog(place.uri, place.access)
        address = str(Path(self.table).absolute())  # statements may be run in another folder
        if urlsplit(self.table).scheme:
            try:
                address = LakeAddress.parse(self.table).uri
            except ValueError:
                address = self.table  # opening it raises an error with the reason
        return DeltaLog(address, access_to(address, ()))

    @property
    def _capacity(self) -> Sku | None:
        """The capacity in the command line or the settings."""
        name = DirectLakeTable.of(self._configured[1]).direct_lake.sku if self._configured else None
        return self.sku or (sku_of(name) if name else None)

    @property
    def _mode(self) -> DirectLakeMode:
        """The kind of Direct Lake in the command line or the settings."""
        if self.mode is not None:
            return DirectLakeMode(self.mode.replace("-", "_"))
        return DirectLakeTable.of(self._configured[1]).direct_lake.mode if self._configured else DirectLakeMode.ONELAKE

    def _consumers(self) -> RetentionConsumers:
        """Return the frames of command line and settings, and the mirror. Raises frame_refused, frames_unreadable."""
        named = named_frames(self._log, self.frame, self.export, self.model_table)
        if self._configured is None:
            return RetentionConsumers(named)
        from mirror_assets.composition import compose  # a table that is named by its address needs no landing zone

        config, settings = self._configured
        manifest = compose(config).table(settings).manifest()
        known = source_consumers(config, settings, self._log, manifest)
        return RetentionConsumers((*named, *known.frames), known.mirror)

    def _inspected(self, *, dictionaries: bool = True) -> InspectedTable:
        """Return the table as it is now."""
        log, cache = self._log, None if self.no_cache else self.cache or cache_folder()
        return InspectedTable(self.table, log, FooterReader(log.uri, log.files, cache, dictionaries), time.time())


def _vacuum(plan: VacuumPlan) -> dict[str, object]:
    return {"is_safe": plan.is_safe, "deleted_bytes": plan.deleted_bytes, "plan": plan}


def _guardrails(found: Guardrails, sku: Sku | None, mode: DirectLakeMode) -> dict[str, object]:
    """Return the guardrails of the capacity, or of all, and the source of their limits."""

    def fitting(one: CapacityFit) -> dict[str, object]:
        fits = one.fits if sku is None else (one.into(sku),)
        return {
            "size": one.size,
            "smallest": one.smallest.name if one.smallest else None,
            "fits": [{"sku": x.sku.name, "verdict": x.verdict, "days_left": x.days_left, "uses": x.uses} for x in fits],
        }

    table, mirror = fitting(found.table), fitting(found.mirror)
    return {"source": SOURCE, "source_date": SOURCE_DATE, "mode": MODE_NAMES[mode], "table": table, "mirror": mirror}
