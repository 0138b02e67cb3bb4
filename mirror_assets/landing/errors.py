"""Errors of a landing zone and of staged slices."""

from __future__ import annotations

from mirror_assets.errors import (
    REBUILD_STEP,
    ErrorCode,
    ErrorRow,
    RebuildError,
    RetryError,
    SettingError,
    StopError,
)


class NameRefused(SettingError):
    """A landing zone can't have this name."""


NAME_REFUSED = ErrorRow(
    ErrorCode.NAME_REFUSED,
    NameRefused,
    "The name can't be used in a landing zone.",
    "name {name!r} can't be used in a landing zone: {why}.",
    "choose another name.",
    "mirror-assets validate",
)


class ManifestCorrupt(StopError):
    """A control file is not one that this program writes."""


MANIFEST_CORRUPT = ErrorRow(
    ErrorCode.LANDING_DAMAGED,
    ManifestCorrupt,
    "A control file is not one that this program writes.",
    "{path} is not a valid control file: {why}.",
    "restore it from a backup of the landing zone, or run `mirror-assets rebuild` for its table.",
    "mirror-assets check --table TABLE --only file_continuity\nmirror-assets rebuild TABLE",
)
MANIFEST_LOST = ErrorRow(
    ErrorCode.LANDING_DAMAGED,
    StopError,
    "Files have landed, the manifest is missing, and the history can't restore it.",
    "{table}: the manifest is missing and can't be restored: {why}.",
    REBUILD_STEP + ".",
    "mirror-assets check --table TABLE --only file_continuity\nmirror-assets rebuild TABLE",
)
STAGED_FILE_LOST = ErrorRow(
    ErrorCode.LANDING_DAMAGED,
    StopError,
    "A committed file is neither staged nor landed.",
    "{table}: {staged}, committed as landing file {number}, is neither staged nor landed.",
    "if you removed it, restore it; otherwise " + REBUILD_STEP + ".",
    "mirror-assets check --table TABLE --only file_continuity\nmirror-assets rebuild TABLE",
)
FOREIGN_FILE = ErrorRow(
    ErrorCode.FOREIGN_CHANGE,
    StopError,
    "A file that this mirror did not publish has the number of a committed one.",
    "{table}: {path} was not published by this mirror: {why}.",
    "find out which program wrote it, and move it out of the table folder; then run again.",
    "mirror-assets check --table TABLE --only file_continuity",
)
METADATA_DIFFERS = ErrorRow(
    ErrorCode.METADATA_DIFFERS,
    StopError,
    "`_metadata.json` declares other keys than `mirror.yaml`. Fabric forbids changing them.",
    "{table}: {path} declares {found}, but mirror.yaml requires {wanted}; declared keys can't be changed.",
    "restore the keys in mirror.yaml; or " + REBUILD_STEP + ".",
    "mirror-assets rebuild TABLE",
)
SLICE_MISSING = ErrorRow(
    ErrorCode.SLICE_NOT_READY,
    StopError,
    "The slice starts after the next uncovered version.",
    "{table}: slice {key} can't land yet: version {wanted_first} is the next one to be covered.",
    "materialize the slice that starts at version {wanted_first} first.",
    "mirror-assets plan --table TABLE    # the slice that is next\nmirror-assets run --table TABLE",
)
SLICE_NOT_STAGED = ErrorRow(
    ErrorCode.SLICE_NOT_STAGED,
    RetryError,
    "No staged parts fit the manifest, or a part has changed since its checks.",
    "{table}: no staged parts of slice {key} fit what has landed so far.",
    "materialize changes for this partition, then landing.",
    "mirror-assets run --table TABLE",
)
SLICE_OUTDATED = ErrorRow(
    ErrorCode.SLICE_OUTDATED,
    StopError,
    "The slice was staged with other settings than those of `mirror.yaml` now, such as before a mask was added, "
    "or by another release of mirror-assets. Nothing of it was published.",
    "{table}: slice {key} was staged with other settings than those of mirror.yaml now, or by another release of "
    "mirror-assets. Nothing of it was published.",
    "materialize changes for this partition again, then landing; `mirror-assets run` stages it again.",
    "mirror-assets run --table TABLE",
)
SLICE_NOT_CHECKED = ErrorRow(
    ErrorCode.SLICE_NOT_READY,
    StopError,
    "Not every blocking check has passed the staged parts.",
    "{table}: slice {key} is not published, because of its checks ({reasons}).",
    "read the failed check's message, fix the cause, then materialize changes again.",
    "mirror-assets run --table TABLE",
)


class LostRace(RetryError):
    """Another publisher committed first."""


LOST_RACE = ErrorRow(
    ErrorCode.TABLE_BUSY,
    LostRace,
    "Another publisher committed first.",
    "{table}: another publisher committed while slice {key} was being published.",
    "run again; versions that it has covered don't land twice.",
    "mirror-assets status --table TABLE    # the other run and its host",
)
REBUILD_RUNNING = ErrorRow(
    ErrorCode.TABLE_BUSY,
    RetryError,
    "A rebuild of the table is running.",
    "{table}: a rebuild is running (step {step}).",
    REBUILD_STEP + " to continue it.",
    "mirror-assets status --table TABLE    # the other run and its host",
)
TABLE_DROPPED = ErrorRow(
    ErrorCode.TABLE_BUSY,
    RetryError,
    "The table folder is being dropped, or was dropped during a publication.",
    "{table}: the table folder is being dropped, or was dropped meanwhile ({step}).",
    "run again; if a drop was interrupted, `mirror-assets drop {table}` continues it.",
    "mirror-assets status --table TABLE    # the other run and its host",
)
EPOCH_ENDED = ErrorRow(
    ErrorCode.LANDING_DAMAGED,
    RebuildError,
    "The table's folder holds a manifest of an epoch that ended when the table was dropped.",
    "{table}: the table folder has the manifest of epoch {epoch}, which ended when the table was dropped.",
    REBUILD_STEP + " to start it again, or `mirror-assets drop {table}` to drop it again.",
    "mirror-assets check --table TABLE --only file_continuity\nmirror-assets rebuild TABLE",
)
PROBLEMS_BUSY = ErrorRow(
    ErrorCode.OUTCOME_UNKNOWN,
    RetryError,
    "Other processes changed the list of problems at the same time.",
    "{path} was changed by other processes {tries} times in a row.",
    "nothing: the next evaluation repeats the change.",
    "mirror-assets check",
)
