"""What a source has lost: what Spark says of it, which proves nothing, and what its log and its store have proved."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, RebuildError, RetryError, StopError

_KEEP = "keep delta.deletedFileRetentionDuration longer than the lag."


class DataFileMissing(RebuildError):
    """A file that the log names for what is to be read is not in the store, by VACUUM or by hand."""

    code = ErrorCode.DATA_FILE_MISSING
    only_reading_tells = True

    def __init__(self, table: str, uri: str, file: str, version: int) -> None:
        self.table, self.uri, self.file, self.version = table, uri, file, version
        super().__init__(
            f"{table}: {file}, which version {version} of {uri} is read from, is gone.",
            f"run `mirror-assets rebuild {table}`; {_KEEP}",
        )


class FeedMissing(RebuildError):
    """By its log, the source did not record its change data feed at a commit that is to be read."""

    code = ErrorCode.FEED_DISABLED
    only_reading_tells = True

    def __init__(self, table: str, uri: str, version: int) -> None:
        self.table, self.uri, self.version = table, uri, version
        super().__init__(
            f"{table}: the change data feed of {uri} was off at version {version}, which has not landed.",
            f"run `mirror-assets rebuild {table}`; keep delta.enableChangeDataFeed on.",
        )


class HistoryExpired(RebuildError):
    """Delta does not read a version any more that is older than the table keeps deleted files."""

    code = ErrorCode.HISTORY_EXPIRED
    only_reading_tells = True

    def __init__(self, table: str, uri: str, version: int, age_hours: float) -> None:
        self.table, self.uri, self.version, self.age_hours = table, uri, version, age_hours
        super().__init__(
            f"{table}: Delta refuses to read version {version} of {uri}: it is {age_hours:,.1f} hours old, older than "
            "its delta.deletedFileRetentionDuration.",
            f"run `mirror-assets rebuild {table}`; {_KEEP}",
        )


class SparkInterrupted(RetryError):
    """Spark lost something of its own, or a connection; the source is as it was."""

    code = ErrorCode.SPARK_INTERRUPTED

    def __init__(self, place: str, why: str) -> None:
        self.place, self.why = place, why
        super().__init__(
            f"{place}: Spark was interrupted: {why}.",
            "run again; if it stays so, see that nothing empties Spark's folders (spark.local.dir) while it works.",
        )


class FileUnfound(SparkInterrupted):
    """Spark did not find a file: perhaps one of the source, perhaps one of its own.

    `told` is what says so, and names the file.
    """

    def __init__(self, place: str, told: str) -> None:
        self.told = told
        super().__init__(place, told)


class SparkFailed(StopError):
    """Spark failed for another reason."""

    code = ErrorCode.SPARK_FAILED

    def __init__(self, place: str, why: str) -> None:
        self.place, self.why = place, why
        super().__init__(
            f"{place}: Spark failed: {why}.", "mend what it names, or read Spark's own messages; then run again."
        )


class FeedRefused(SparkFailed):
    """Delta says that the change data feed was off."""


class HistoryRefused(SparkFailed):
    """Delta says that a version is too old to be read."""
