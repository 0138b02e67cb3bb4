"""What can go wrong while Spark reads the feed or writes parts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from mirror_assets.errors import ErrorCode, MirrorError, RebuildError, RetryError, SettingError, StopError
from mirror_assets.redaction import redacted_error

_MISSING_FILE = re.compile(r"FAILED_READ_FILE\.FILE_NOT_EXIST|PATH_NOT_FOUND|FileNotFoundException")
_NO_FEED = "DELTA_MISSING_CHANGE_DATA"
_EXPIRED = "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION"
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_MAX_TEXT = 400


class DuplicateKey(StopError):
    """The source has several rows of one key, which keyed mirroring can't express."""

    code = ErrorCode.DUPLICATE_KEY

    def __init__(self, table: str, rows: int, samples: tuple[str, ...]) -> None:
        self.table, self.rows, self.samples = table, rows, samples
        super().__init__(
            f"{table}: {rows} changes repeat a key within one commit, for example {'; '.join(samples)}; "
            "nothing of the slice was published.",
            "remove the duplicate rows from the source, or choose `keys` that are unique; then run "
            f"`mirror-assets rebuild {table}`: the commit stays in the feed.",
        )


class RowIdsUnfit(RebuildError):
    """Rows appear whose commit versions say that they were there before."""

    code = ErrorCode.ROW_IDS_UNFIT
    only_reading_tells = True

    def __init__(self, table: str, rows: int) -> None:
        self.table, self.rows = table, rows
        super().__init__(
            f"{table}: {rows} rows have come whose row commit versions are older than what has landed, and no RESTORE "
            "explains them; nothing of the slice was published.",
            f"run `mirror-assets rebuild {table}`.",
        )


class DataFileMissing(RebuildError):
    """A file that the log names is gone, by VACUUM or by hand."""

    code = ErrorCode.DATA_FILE_MISSING
    only_reading_tells = True

    def __init__(self, folder: str, why: str) -> None:
        self.folder = folder
        super().__init__(
            f"a data or change file of the source is gone ({why}).",
            "run `mirror-assets rebuild` for the table; keep delta.deletedFileRetentionDuration longer than the lag.",
        )


class FeedMissing(RebuildError):
    """The change data feed was off when a commit of the slice was made."""

    code = ErrorCode.FEED_DISABLED
    only_reading_tells = True

    def __init__(self, folder: str) -> None:
        self.folder = folder
        super().__init__(
            "the source's change data feed was off for a commit that has not landed.",
            "run `mirror-assets rebuild` for the table; keep delta.enableChangeDataFeed on.",
        )


class HistoryExpired(RebuildError):
    """Delta does not read a version any more that is older than the table keeps deleted files."""

    code = ErrorCode.HISTORY_EXPIRED
    only_reading_tells = True

    def __init__(self, folder: str) -> None:
        self.folder = folder
        super().__init__(
            "Delta refuses to read a version of the source that is older than its delta.deletedFileRetentionDuration.",
            "run `mirror-assets rebuild` for the table; keep delta.deletedFileRetentionDuration longer than the lag.",
        )


class SparkOutOfSpace(RetryError):
    """Spark found no space left; nothing was published."""

    code = ErrorCode.STORE_FULL

    def __init__(self, folder: str) -> None:
        self.folder = folder
        super().__init__(f"no space left while Spark was at {folder}.", "free space and run again; nothing was lost.")


class SessionUnfit(SettingError):
    """The Spark session has no way to read what is asked for."""

    code = ErrorCode.SESSION_UNFIT

    def __init__(self, what: str, versions: Sequence[str]) -> None:
        super().__init__(
            f"{what} reads through Delta's own classes, which this Spark session does not offer.",
            f"use a classic session, not Spark Connect, with delta-spark {' or '.join(versions)}.",
        )


class SparkFailed(StopError):
    """Spark failed for another reason."""

    code = ErrorCode.SPARK_FAILED

    def __init__(self, folder: str, why: str) -> None:
        self.folder = folder
        super().__init__(f"Spark failed at {folder}: {why}.", "read Spark's own messages, then run again.")


class SparkNotStarted(SettingError):
    """Spark did not start, or refused a setting."""

    code = ErrorCode.SESSION_UNFIT

    def __init__(self, why: str) -> None:
        super().__init__(
            f"Spark did not start: {why}.",
            "mend what it names, in `spark.settings` or where Spark runs, then run again.",
        )


class PackageRefused(SettingError):
    """`spark.jars.packages` names a Delta that is not the installed delta-spark's."""

    code = ErrorCode.CONFIG_INVALID

    def __init__(self, wanted: str, installed: str) -> None:
        self.wanted, self.installed = wanted, installed
        super().__init__(
            f"spark.settings: spark.jars.packages names {wanted}; the installed delta-spark needs {installed}.",
            "leave it out, as Delta's JARs are there without it; for another Delta install another delta-spark.",
        )


def spark_error(error: Exception, folder: str) -> MirrorError:
    """The error of ours that says what a Spark exception means; py4j gives only text for failures in tasks."""
    text = str(error)
    condition = _CONDITION.search(text)
    short = condition[1] if condition else text.strip().partition("\n")[0][:_MAX_TEXT]
    if _NO_SPACE.search(text):
        return SparkOutOfSpace(folder)
    if _NO_FEED in text:
        return FeedMissing(folder)
    if _EXPIRED in text:
        return HistoryExpired(folder)
    if _MISSING_FILE.search(text):
        return DataFileMissing(folder, short)
    return SparkFailed(folder, short)


@contextmanager
def spark_errors(place: str) -> Iterator[None]:
    """Raise what Spark raises in the block as an error of ours; `place` is what it wrote or read."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        told = redacted_error(error)
        raise spark_error(told, place) from told
