"""An asset check: its description, what it reads, and how its result becomes Dagster's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, TypeVar, cast

import dagster as dg

from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import LagLimits, RetentionLimits, TableSettings
from mirror_assets.docs_links import check_link, error_link
from mirror_assets.landing.names import TableName
from mirror_assets.landing.problems import ProblemKey
from mirror_assets.monitoring import Mirror
from mirror_assets.orchestration.event_metadata import DOCS_URL, link_item
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.translator import AssetKind, MetadataItem
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.lag import PendingCommits, pending_commits
from mirror_assets.pipeline.next_action import ZoneState, zone_state
from mirror_assets.pipeline.plan import TablePlan, plan_table
from mirror_assets.pipeline.project import Project
from mirror_assets.verify.check_result import CheckResult

# Metadata of a result that was skipped because another check failed: alerts report that one only.
SKIPPED: Final = "skipped"
# What to do when a commit can soon no longer be read.
KEEP_FILES = "start a run that mirrors the pending commits, or execute the statement in the message: it retains files."
_Shared = TypeVar("_Shared")


@dataclass(frozen=True, eq=False)
class CheckedTable:
    """A table whose checks run one after another; what several of them read is read once.

    `is_incremental`: file_continuity reads only what is new since it last passed, and reconciled a share of a large
    table, or nothing of an unchanged one. `shared_mirror` is a mirror whose status is read once for all tables.
    """

    instance: dg.DagsterInstance
    assets: MirrorAssets
    composed: Project
    table: TableSettings
    is_incremental: bool = False
    with_spark: bool = False
    shared_mirror: Mirror | None = None
    _shared: dict[Callable[[CheckedTable], object], object] = field(default_factory=dict, init=False)

    @cached_property
    def context(self) -> TableContext:
        """The table in the pipeline."""
        return self.composed.table(self.table)

    @cached_property
    def pending(self) -> PendingCommits:
        """The pending commits: lag and retention judge the same moment."""
        return pending_commits(self.context)

    @cached_property
    def zone(self) -> ZoneState:
        """The table's control files: the checks judge the same moment."""
        return zone_state(self.context)

    @cached_property
    def plan(self) -> TablePlan:
        """The table's plan, of its next slice. Raises what planning raises."""
        return plan_table(self.context, at_most=1)

    @cached_property
    def mirror(self) -> Mirror:
        """The mirror of the landing zone."""
        return self.shared_mirror or self.composed.mirror()

    def share(self, read: Callable[[CheckedTable], _Shared]) -> _Shared:
        """Return `read(self)`, which is called for the first of the checks that ask for it."""
        if read not in self._shared:
            self._shared[read] = read(self)
        return cast("_Shared", self._shared[read])


@dataclass(frozen=True)
class Check:
    """An asset check of a kind of asset.

    `run` returns None where there is nothing to check. A failed `blocking` check fails the run. `next_step` is for
    failures whose result names none. `applies` returns whether a table has the check. While one of the checks that it
    `follows` fails, its own failure is no problem of its own. Nor is one that `may_pass` before it has lasted. Its
    `section` of the page of checks has its name, unless it has another one.
    """

    name: str
    asset: AssetKind
    description: str
    run: Callable[[CheckedTable], CheckResult | None]
    blocking: bool = False
    needs_spark: bool = False
    reads_source: bool = True
    reads_zone: bool = True
    next_step: str = ""
    follows: tuple[str, ...] = ()
    may_pass: bool = False
    section: str = ""
    applies: Callable[[Config, TableSettings], bool] = lambda *_: True

    def key(self, assets: MirrorAssets, table: TableName) -> dg.AssetCheckKey:
        """Return Dagster's key of the table's check."""
        return dg.AssetCheckKey(assets.checked(self.asset, table), self.name)

    def problem(self, table: TableSettings) -> ProblemKey:
        """Return the key of the problem that a failure of the table's check is."""
        return ProblemKey(str(table.name), self.asset.value, self.name)

    def spec(self, assets: MirrorAssets, table: TableName) -> dg.AssetCheckSpec:
        """Return Dagster's definition of the table's check."""
        asset = assets.checked(self.asset, table)
        return dg.AssetCheckSpec(self.name, asset=asset, blocking=self.blocking, description=self.description)

    def result(self, assets: MirrorAssets, table: TableName, found: CheckResult) -> dg.AssetCheckResult:
        """Return the result as a step yields it: metadata has statistics; of a failure, the next step and a link."""
        metadata: dict[str, MetadataItem] = {**found.metadata}
        if found.problems:
            code = found.metadata.get("code")
            link = check_link(self.section or self.name) if code is None else error_link(str(code))
            metadata = {DOCS_URL: link_item(link), **metadata}
        if found.problems and (step := found.next_step or self.next_step):
            metadata = {"next_step": step, **metadata}
        if found.warning:
            metadata = {"warning": found.warning, **metadata}
        if found.skipped:
            metadata = {SKIPPED: found.skipped, **metadata}
        # A skipped check is not a second failure, and has not passed either.
        is_warning = found.is_warning or bool(found.skipped) or (found.passed and bool(found.warning))
        return dg.AssetCheckResult(
            asset_key=assets.checked(self.asset, table),
            check_name=self.name,
            passed=found.passed,
            severity=dg.AssetCheckSeverity.WARN if is_warning else dg.AssetCheckSeverity.ERROR,
            description=found.message or found.warning or found.note or None,
            metadata=metadata,
        )

    def evaluation(self, assets: MirrorAssets, table: TableName, found: CheckResult) -> dg.AssetCheckEvaluation:
        """Return the result as an event, for runs that materialize no assets."""
        result = self.result(assets, table, found)
        return dg.AssetCheckEvaluation(
            asset_key=assets.checked(self.asset, table),
            check_name=self.name,
            passed=result.passed,
            metadata=result.metadata,
            severity=result.severity,
            description=result.description,
            blocking=self.blocking,
        )


def by_limits(check: Callable[[float | None], CheckResult], limits: LagLimits | RetentionLimits) -> CheckResult:
    """Return the check's error at the limit for errors, else its result at the limit for warnings, as a warning."""
    error = check(limits.error_seconds)
    return replace(check(limits.warn_seconds), is_warning=True) if error.passed else error
