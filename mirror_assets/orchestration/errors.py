"""The table of errors of runs, sensors and definitions."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, ErrorRow, RetryError, SettingError, StopError

_VALIDATE = "mirror-assets validate"
RUN_CHECKS_FAILED = ErrorRow(
    ErrorCode.CHECKS_FAILED,
    StopError,
    "Blocking checks failed in a run.",
    "{count} failed: {failed}.",
    "do what the message says.",
    "mirror-assets check --table TABLE",
)
NEW_PROBLEMS = ErrorRow(
    ErrorCode.CHECKS_FAILED,
    StopError,
    "A run of `checks` has found new errors.",
    "{count}: {found}.",
    "open the check that the message names. The next run succeeds if nothing else fails.",
    "mirror-assets check",
)
CHECKS_LATE = ErrorRow(
    ErrorCode.STORE_UNAVAILABLE,
    RetryError,
    "The checks of a table have not ended in time.",
    "the checks of {table} have not ended after {seconds:.0f} s: a store does not respond.",
    "check that this machine reaches the stores of the source and of the landing zone.",
    "mirror-assets doctor --table TABLE",
)
CHECK_UNKNOWN = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "No check has this name.",
    "no check is called {name!r}.",
    "use one of: {known}.",
    _VALIDATE,
)
TOO_FEW_RUNS = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "Dagster may start no more runs at a time than the sensor `mirror` needs.",
    "automation.batches is {batches}, and Dagster starts at most {at_once} runs at a time: none is left for checks and "
    "rebuilds.",
    "set concurrency.runs.max_concurrent_runs in dagster.yaml to {wanted} or more.",
    _VALIDATE,
)
PARTITION_UNKNOWN = ErrorRow(
    ErrorCode.NO_SLICE,
    SettingError,
    "A partition key is not that of a slice.",
    "partition {partition!r} is not a slice of the table: a slice is `epoch.first-last`, such as 1.5-7 for versions "
    "5 to 7 of epoch 1.",
    "choose partitions that runs have registered, and delete this one (in Dagster's UI: the "
    "asset's menu, Delete partitions).",
    "mirror-assets plan --table TABLE",
)
PARTITION_MISSING = ErrorRow(
    ErrorCode.NO_SLICE,
    SettingError,
    "A run of an asset with slices has no partition.",
    "the run has no partition, and each partition of the asset is a slice.",
    "choose partitions, or launch the job `mirror_table`, which mirrors all pending slices of a table.",
    "mirror-assets run --table TABLE",
)
RANGE_EMPTY = ErrorRow(
    ErrorCode.NO_SLICE,
    SettingError,
    "A range of partitions has no slices: Dagster's list of partitions has its last one before its first one.",
    "the partition range {first}...{last} is reversed, and has no slices: Dagster's list of partitions has {last} "
    "before {first}.",
    "begin with the earlier partition of the list, or launch the job `mirror_table`, which mirrors all pending slices.",
    "mirror-assets plan --table TABLE",
)
KEY_TAKEN = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "Two assets have the same key.",
    "asset key {key} is that of the {known} and of the {this}.",
    "give each asset its own key in `translation`, for example with {{ stage }} in it.",
    _VALIDATE,
)
LOCATION_SHARED = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "Two code locations of one Dagster instance have assets with the same keys.",
    "asset {asset} also belongs to the code location {location}: its run {run} materializes it. Each shows the other's "
    "events.",
    "mirror tables of the same name in separate Dagster instances (DAGSTER_HOME), or remove them from one mirror.yaml.",
    _VALIDATE,
)
INPUT_UNSUPPORTED = ErrorRow(
    ErrorCode.CONFIG_INVALID,
    SettingError,
    "An asset of the project takes a mirrored table as a type that can't be loaded.",
    "a table can't be loaded as {name}{why}.",
    "annotate the input with pyarrow.Table, pyarrow.RecordBatchReader, pyarrow.dataset.Dataset, pandas.DataFrame, "
    "polars.DataFrame or polars.LazyFrame.",
    _VALIDATE,
)
NOT_MIRRORED_YET = ErrorRow(
    ErrorCode.MIRROR_UNREADABLE,
    SettingError,
    "An asset of the project takes a table that the mirror does not have yet.",
    "{table} can't be loaded: the mirror does not have the table yet.",
    "run it again when the replicator has applied its first files; `mirror-assets status` shows when.",
    "mirror-assets status --table TABLE",
)
