"""What a feature adds to the core: `features` has a folder for each, and the core imports none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from mirror_assets.markers import ROW_MARKER, Marker

if TYPE_CHECKING:
    import click
    import dagster as dg
    from pyspark.sql import DataFrame, SparkSession

    from mirror_assets.config.discovered import When
    from mirror_assets.config.document import Steps
    from mirror_assets.config.errors import Problem
    from mirror_assets.config.model import Config
    from mirror_assets.config.rules import Rule
    from mirror_assets.config.table_settings import TableSettings
    from mirror_assets.landing.names import TableName
    from mirror_assets.landing.problems import ProblemFile, ProblemKey, Sent, StoredProblem
    from mirror_assets.monitoring import Mirror
    from mirror_assets.orchestration.asset_check import Check
    from mirror_assets.orchestration.dagster_internals import Job
    from mirror_assets.orchestration.mirror_assets import MirrorAssets
    from mirror_assets.settings import Section
    from mirror_assets.zones import Store
    from mirror_assets.zones.store import SparkReach

# The folders of `features`, each with one `FEATURE`. Without its line here, a feature does not exist.
_NAMES = ("init", "demo", "history", "direct_lake", "alerts", "fabric")


@dataclass(frozen=True)
class Timetable:
    """When a job runs, in UTC. With `hours`, `checks` alerts if no run has ended well within twice this time."""

    cron: str
    hours: int | None = None


@dataclass(frozen=True)
class FeatureAsset:
    """The Delta table that a feature makes of a table.

    `kind` is the last part of its asset's key, `kinds` are those that Dagster shows, `paragraphs` describe it.
    """

    kind: str
    uri: str
    kinds: frozenset[str]
    paragraphs: tuple[str, str, str]


@dataclass(frozen=True)
class MirrorPlace:
    """A mirror that another system keeps, as `kind` in Dagster; `page` says where, in Markdown.

    Its Delta tables are below `tables`, as Spark names the folder, whose page is at `url`. Those without a schema are
    in `default_schema`. `credential` reads them as a store's; Spark does by `spark_reach`, or not for the reason
    `unreadable`.
    """

    kind: str
    page: str
    tables: str
    url: str
    default_schema: str
    credential: str
    open: Callable[[Store], Mirror]
    spark_reach: SparkReach | None = None
    unreadable: Problem | None = None


class Delivery(Protocol):
    """Sends messages about problems, in three steps, so that of several evaluators only one sends each."""

    def claim(self, file: ProblemFile, spoken_for: Callable[[StoredProblem], bool]) -> ProblemFile:
        """Return the file with claims on the due problems that this evaluation speaks for; others leave them alone."""
        ...

    @property
    def has_claims(self) -> bool:
        """Whether there is something to send."""
        ...

    def deliver(self, file: ProblemFile) -> Mapping[ProblemKey, Mapping[str, Sent]]:
        """Send what is due of the claimed problems; return what each receiver has accepted of each."""
        ...

    def settle(self, file: ProblemFile, accepted: Mapping[ProblemKey, Mapping[str, Sent]]) -> ProblemFile:
        """Return the file with what was accepted, and without the claims."""
        ...


@dataclass(frozen=True)
class StagedRows:
    """The staged rows of a slice, of which nothing has landed yet.

    `parts` are the Parquet files, as Spark takes them, in the order in which they land. They have the mirrored columns,
    and last `__rowMarker__`, unless all rows are inserts. A delete has its key alone. `spark` opens a session.
    """

    table: str
    slice: str
    keys: tuple[str, ...]
    parts: tuple[str, ...]
    spark: Callable[[], SparkSession]

    @property
    def rows(self) -> DataFrame:
        """All rows as one frame, each with its `__rowMarker__`: 0 insert, 1 update, 2 delete, 4 upsert."""
        found = self.spark().read.option("__globPaths__", "false").parquet(*self.parts)
        return found if ROW_MARKER in found.columns else found.selectExpr("*", f"0 AS {ROW_MARKER}")

    @property
    def values(self) -> DataFrame:
        """The rows that have values: all but deletes."""
        return self.rows.where(f"{ROW_MARKER} <> {Marker.DELETE.value}")


@dataclass(frozen=True)
class SliceCheck:
    """A check of your own of the staged rows of each slice: `problems` returns a sentence for each problem.

    A slice with problems does not land if the check is `blocking`; else they are warnings. `tables` are the names of
    the tables that have it; empty: all. A slice without rows passes. Raises ValueError for a name that Dagster refuses.
    """

    name: str
    description: str
    problems: Callable[[StagedRows], Iterable[str]]
    blocking: bool = True
    tables: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the name."""
        if not self.name.isidentifier() or not self.name.isascii():
            raise ValueError(f"a check's name has letters, digits and `_`, got {self.name!r}")


class Feature:
    """The entry point of a feature; what a method does not return, the feature does not have.

    A method imports what it needs when it is called: a feature that is not used costs no import. A project's own
    feature has no settings, rules, folders and commands: mirror.yaml names it, so these are known before it.
    """

    @property
    def module(self) -> str:
        """The module with its code: a resident run ends when that has changed."""
        return type(self).__module__

    # Settings.

    def settings(self) -> type[Section] | None:
        """Return its settings in mirror.yaml, a model that the whole inherits: `of` finds them there."""
        return None

    def table_settings(self) -> type[Section] | None:
        """Return its settings of a table, as `settings` does."""
        return None

    def mirror_settings(self) -> type[Section] | None:
        """Return its settings in the section `mirror`, as `settings` does: one that is set replaces the stand-in."""
        return None

    def mirror(self, config: Config) -> MirrorPlace | None:  # noqa: ARG002 features override it
        """Return the mirror that its settings name."""
        return None

    def rules(self) -> Sequence[Rule]:
        """Return its rules over several settings."""
        return ()

    def folders(self) -> Mapping[Steps, str]:
        """Return its settings that name a folder, with their defaults."""
        return {}

    def places(self, config: Config) -> Mapping[str, str]:  # noqa: ARG002 features override it
        """Return the folders and addresses where it may write, each with words for it: no table is found there."""
        return {}

    def reads(self, config: Config) -> Sequence[str]:  # noqa: ARG002
        """Return the addresses that it uses beside the tables, so that Spark can reach them."""
        return ()

    def with_found_tables(self, config: Config, when: When) -> Config:  # noqa: ARG002
        """Return the configuration with the tables that it finds. Raises nothing: `Config.discovered` has errors."""
        return config

    # Of a table.

    def asset_of(self, config: Config, table: TableSettings) -> FeatureAsset | None:  # noqa: ARG002
        """Return what it makes of the table, if that is configured."""
        return None

    def read_up_to(self, config: Config, table: TableSettings) -> int | None:  # noqa: ARG002
        """Return the version up to which it has read the source's commits; None if it reads none of the table.

        VACUUM and retention leave it the commits after that. Raises what reading its state raises.
        """
        return None

    def reads_daily(self, table: TableSettings) -> bool:  # noqa: ARG002
        """Return whether it reads the table's commits once a day, not when they come."""
        return False

    # Of the problems that `checks` finds.

    def delivery(self, config: Config, now_ms: int) -> Delivery | None:  # noqa: ARG002 features override it
        """Return what sends messages about problems at this time, in ms since 1970, if it has receivers."""
        return None

    def after_checks(self, config: Config) -> None:
        """Act after each evaluation of all checks."""

    def mirror_changed(self, config: Config, tables: Sequence[TableName], warn: Callable[[str], None]) -> None:
        """Act after the mirror has changed these tables, as a run of checks or of `replicate` has noticed.

        It must not fail the run: `warn` takes a line for its log.
        """

    # In Dagster, and on the command line.

    def assets(self, assets: MirrorAssets, table: TableSettings) -> Iterable[dg.AssetsDefinition]:  # noqa: ARG002
        """Return the assets that it makes of the table."""
        return ()

    def checks(self) -> Sequence[Check]:
        """Return its asset checks; each says which tables have it."""
        return ()

    def slice_checks(self) -> Sequence[SliceCheck]:
        """Return its checks of staged rows, which run before a slice lands."""
        return ()

    def jobs(self, assets: MirrorAssets) -> Sequence[Job]:  # noqa: ARG002
        """Return its jobs, if the configuration uses it."""
        return ()

    def timetables(self) -> Mapping[str, Timetable]:
        """Return when its jobs run, by their names."""
        return {}

    def commands(self) -> Sequence[click.Command]:
        """Return its commands of `mirror-assets`."""
        return ()


def assets_of_features(config: Config, table: TableSettings) -> dict[str, FeatureAsset]:
    """Return what features make of the table, by the kind of the asset."""
    made = (feature.asset_of(config, table) for feature in config.all_features)
    return {one.kind: one for one in made if one is not None}


def feature_versions(config: Config, table: TableSettings) -> dict[str, int]:
    """Return the version that each asset of `assets_of_features` has, if any, by the kind of the asset."""
    return {
        made.kind: version
        for feature in config.all_features
        if (made := feature.asset_of(config, table)) is not None
        and (version := feature.read_up_to(config, table)) is not None
    }


def read_by_features(config: Config, table: TableSettings) -> int | None:
    """Return the version up to which all features have read the source's commits; None if none reads any."""
    read = (feature.read_up_to(config, table) for feature in config.all_features)
    return min((version for version in read if version is not None), default=None)


def report_changed(config: Config, tables: Sequence[TableName], warn: Callable[[str], None]) -> None:
    """Let the features act after the mirror has changed these tables, if there are any."""
    for feature in config.all_features if tables else ():
        feature.mirror_changed(config, tables, warn)


@dataclass(frozen=True)
class _OwnCheck(Feature):
    check: SliceCheck

    @property
    def module(self) -> str:
        return self.check.problems.__module__

    def slice_checks(self) -> Sequence[SliceCheck]:
        return (self.check,)


def own_feature(given: object) -> Feature:
    """Return what a project adds as a feature: a SliceCheck, a Feature or its class. Raises TypeError for others."""
    if isinstance(given, SliceCheck):
        return _OwnCheck(given)
    made = given() if isinstance(given, type) and issubclass(given, Feature) else given
    if not isinstance(made, Feature):
        raise TypeError("it is neither a SliceCheck nor a Feature")
    return made


def slice_checks(config: Config, table: TableSettings) -> list[SliceCheck]:
    """Return the features' checks of the table's staged rows."""
    found = (check for feature in config.all_features for check in feature.slice_checks())
    return [check for check in found if not check.tables or str(table.name) in check.tables]


@cache
def features() -> tuple[Feature, ...]:
    """Return every feature of this package, in the order of the list."""
    found: list[Feature] = [import_module(f"mirror_assets.features.{name}").FEATURE for name in _NAMES]
    return tuple(found)
