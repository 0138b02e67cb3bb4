"""Errors of a landing zone and of staged slices."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, RebuildError, RetryError, SettingError, StopError, rebuild_step


class NameRefused(SettingError):
    """A landing zone can't have this name."""

    code = ErrorCode.NAME_REFUSED

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        super().__init__(f"name {name!r} can't be used in a landing zone: {why}.", "choose another name.")


class LandingDamaged(StopError):
    """A file in the landing zone is missing or invalid, and publishing can't restore it."""

    code = ErrorCode.LANDING_DAMAGED


class ManifestCorrupt(LandingDamaged):
    """A control file is not one that this program writes."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        super().__init__(
            f"{path} is not a valid control file: {why}.",
            "restore it from a backup of the landing zone, or run `mirror-assets rebuild` for its table.",
        )


class ManifestLost(LandingDamaged):
    """Files have landed, the manifest is missing, and the history can't restore it."""

    def __init__(self, table: str, why: str) -> None:
        super().__init__(
            f"{table}: the manifest is missing and can't be restored: {why}.",
            f"{rebuild_step(table)}.",
        )


class StagedFileLost(LandingDamaged):
    """A committed file is neither staged nor landed."""

    def __init__(self, table: str, staged: str, number: int) -> None:
        self.staged, self.number = staged, number
        super().__init__(
            f"{table}: {staged}, committed as landing file {number}, is neither staged nor landed.",
            f"if you removed it, restore it; otherwise {rebuild_step(table)}.",
        )


class ForeignFile(StopError):
    """A file that this mirror did not publish has the number of a committed one."""

    code = ErrorCode.FOREIGN_CHANGE

    def __init__(self, table: str, path: str, why: str) -> None:
        self.path = path
        super().__init__(
            f"{table}: {path} was not published by this mirror: {why}.",
            "find the program that writes into the table folder, move the file, then run again.",
        )


class MetadataDiffers(StopError):
    """`_metadata.json` declares other keys than mirror.yaml; Fabric forbids changing declared keys."""

    code = ErrorCode.METADATA_DIFFERS

    def __init__(self, table: str, path: str, found: str, wanted: str) -> None:
        self.path = path
        super().__init__(
            f"{table}: {path} declares {found}, but mirror.yaml requires {wanted}; declared keys can't be changed.",
            f"restore the keys in mirror.yaml; or {rebuild_step(table)}.",
        )


class SliceMissing(StopError):
    """The slice starts after the next uncovered version."""

    code = ErrorCode.SLICE_NOT_READY

    def __init__(self, table: str, key: str, wanted_first: int) -> None:
        self.wanted_first = wanted_first
        super().__init__(
            f"{table}: slice {key} can't land yet: version {wanted_first} is the next one to be covered.",
            f"materialize the slice that starts at version {wanted_first} first.",
        )


class SliceNotStaged(RetryError):
    """No staged parts of this slice are for the manifest's next generation."""

    code = ErrorCode.SLICE_NOT_STAGED

    def __init__(self, table: str, key: str) -> None:
        self.key = key
        super().__init__(
            f"{table}: no staged parts of slice {key} fit what has landed so far.",
            "materialize changes for this partition, then landing.",
        )


class SliceOutdated(StopError):
    """The slice was staged with other settings, or by another release."""

    code = ErrorCode.SLICE_OUTDATED

    def __init__(self, table: str, key: str) -> None:
        super().__init__(
            f"{table}: slice {key} was staged with other settings than those of mirror.yaml now, or by another release "
            "of mirror-assets. Nothing of it was published.",
            "materialize changes for this partition again, then landing; `mirror-assets run` stages it again.",
        )


class SliceNotChecked(StopError):
    """Not every blocking check has passed the staged parts."""

    code = ErrorCode.SLICE_NOT_READY

    def __init__(self, table: str, key: str, missing: tuple[str, ...], failed: tuple[str, ...]) -> None:
        self.missing, self.failed = missing, failed
        reasons = [f"failed: {', '.join(failed)}"] if failed else []
        reasons += [f"not run: {', '.join(missing)}"] if missing else []
        super().__init__(
            f"{table}: slice {key} is not published, because of its checks ({'; '.join(reasons)}).",
            "read the failed check's message, fix the cause, then materialize changes again.",
        )


class LostRace(RetryError):
    """Another publisher committed first."""

    code = ErrorCode.TABLE_BUSY

    def __init__(self, table: str, key: str) -> None:
        super().__init__(
            f"{table}: another publisher committed while slice {key} was being published.",
            "run again; versions that it has covered don't land twice.",
        )


class RebuildRunning(RetryError):
    """A rebuild of the table is running."""

    code = ErrorCode.TABLE_BUSY

    def __init__(self, table: str, step: str) -> None:
        super().__init__(
            f"{table}: a rebuild is running (step {step}).",
            f"{rebuild_step(table)} to continue it.",
        )


class TableDropped(RetryError):
    """The table folder is being dropped, or was dropped during a publication."""

    code = ErrorCode.TABLE_BUSY

    def __init__(self, table: str, step: str) -> None:
        super().__init__(
            f"{table}: the table folder is being dropped, or was dropped meanwhile ({step}).",
            f"run again; if a drop was interrupted, `mirror-assets drop {table}` continues it.",
        )


class EpochEnded(RebuildError):
    """A late publisher has written a manifest into the folder of a dropped table."""

    code = ErrorCode.LANDING_DAMAGED

    def __init__(self, table: str, epoch: int) -> None:
        super().__init__(
            f"{table}: the table folder has the manifest of epoch {epoch}, which ended when the table was dropped.",
            f"{rebuild_step(table)} to start it again, or `mirror-assets drop {table}` to drop it again.",
        )
