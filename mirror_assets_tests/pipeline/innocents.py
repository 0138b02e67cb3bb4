"""Exceptions that look like a loss of the source, while the source is healthy: none of them may start a rebuild."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.errors import ErrorRow, RebuildError
from mirror_assets.landing.errors import EPOCH_ENDED
from mirror_assets.landing.rebuild import RebuildStep, advance_rebuild, begin_drop, remove_table
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.errors import SNAPSHOT_LOST, SOURCE_BROKE
from mirror_assets.pipeline.stage import encode_slice
from mirror_assets.source.errors import DATA_FILE_MISSING, FILE_OVERWRITTEN, LOG_GAP
from mirror_assets.source.source_files import SourceFiles
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.landed_slices import landed_slices

_ENCODE = "mirror_assets.pipeline.stage.encode_slice"
_COMMIT = "INSERT INTO {t} VALUES (900, 'x', 1)"


@dataclass(frozen=True)
class Innocent:
    """What is raised, or done, in a run; the loss it could be taken for; and what the run says, None if it ends well.

    `epoch` is the table's, before and after.
    """

    name: str
    taken_for: ErrorRow[RebuildError]
    strike: Callable[[Lab, pytest.MonkeyPatch], object]
    says: str | None
    epoch: int = 1


def _java(lab: Lab, name: str, message: str, cause: JavaObject | None = None) -> JavaObject:
    package = lab.spark._jvm
    for step in name.split("."):
        package = getattr(package, step)
    return package(message, cause) if cause else package(message)


def _always(lab: Lab, patch: pytest.MonkeyPatch, make: Callable[[], Exception], times: int = 100) -> None:
    """Let Spark fail with this as often while it encodes."""
    lab.sql("INSERT INTO {t} VALUES (901, 'x', 1)")
    left = [times]

    def fail(*args: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            return encode_slice(*args)  # type: ignore[arg-type]
        with spark_errors("shop.orders, encoding"):
            raise make()

    patch.setattr(_ENCODE, fail)


def _not_found(message: str, times: int = 100) -> Callable[[Lab, pytest.MonkeyPatch], None]:
    """Java's exception with a message; {lab} is the lab's folder, {file} a data file of the newest commit."""

    def strike(lab: Lab, patch: pytest.MonkeyPatch) -> None:
        def make() -> Exception:
            told = message.format(lab=lab.root, file=_newest_file(lab))
            java = _java(lab, "java.io.FileNotFoundException", told)
            outer = (
                "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:/x. File does not exist."
            )
            spark = _java(lab, "org.apache.spark.SparkException", outer, java)
            failure: Exception = Py4JJavaError("An error occurred while calling o249.parquet.\n", spark)
            return failure

        _always(lab, patch, make, times)

    return strike


def _newest_file(lab: Lab) -> Path:
    """A data file that the newest commit adds."""
    files = set(DeltaTable(lab.uri).file_uris())
    version = DeltaTable(lab.uri).version()
    added = files - set(DeltaTable(lab.uri, version=version - 1).file_uris())
    return Path(min(added).removeprefix("file://"))


def _missing_parts_folder(lab: Lab, patch: pytest.MonkeyPatch) -> None:
    """PATH_NOT_FOUND, as Spark itself raises it for a folder of staged parts."""

    def make() -> Exception:
        try:
            lab.spark.read.parquet(f"{lab.root}/landing/_scratchPad/shop.orders/9-x/parts")
        except PySparkException as error:
            failure: Exception = error
            return failure
        raise AssertionError

    _always(lab, patch, make)


def _old_file(lab: Lab, patch: pytest.MonkeyPatch) -> None:
    """A file that VACUUM took from an old version: gone, but not read by this slice."""
    (old, *_) = sorted(Path(lab.uri).glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    old.unlink()
    _not_found(f"File file:{old} does not exist")(lab, patch)


def _while_it_reads(harm: Callable[[Path], None]) -> Callable[[Lab, pytest.MonkeyPatch], None]:
    """Something happens to the source's folder after the slice is planned; Spark itself fails by it."""

    def strike(lab: Lab, patch: pytest.MonkeyPatch) -> None:
        lab.sql(_COMMIT)

        def harmed(*args: object) -> object:
            harm(Path(lab.uri))
            lab.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
            return encode_slice(*args)  # type: ignore[arg-type]

        patch.setattr(_ENCODE, harmed)

    return strike


def _unmount(source: Path) -> None:
    if (source / "_delta_log").exists():
        source.rename(source.with_name("unmounted"))
        source.mkdir()


def _dangle(source: Path) -> None:
    for file in source.glob("*.parquet"):
        if not file.is_symlink():
            file.rename(source.parent / file.name)
            file.symlink_to("/not/mounted")


def _block_files(lab: Lab, patch: pytest.MonkeyPatch) -> None:
    """A cleaner takes Spark's block files; when the run has failed once, they are back."""
    lab.sql(_COMMIT, "UPDATE {t} SET id = id + 1000 WHERE id > 3")
    manager = lab.spark._jvm.org.apache.spark.SparkEnv.get().blockManager().diskBlockManager()
    folders = [Path(str(folder)) for folder in manager.localDirsString()]
    tries = []

    def cleaned(*args: object) -> object:
        tries.append(1)
        if len(tries) > 1:
            return encode_slice(*args)  # type: ignore[arg-type]
        with _away(folders):
            return encode_slice(*args)  # type: ignore[arg-type]

    patch.setattr(_ENCODE, cleaned)
    patch.setattr("mirror_assets.encode.changes._SMALL_BYTES", -1)  # only a shuffle has block files


@contextmanager
def _away(folders: list[Path]) -> Iterator[None]:
    for folder in folders:
        folder.rename(folder.with_name(f"{folder.name}.away"))
    try:
        yield
    finally:
        for folder in folders:
            folder.with_name(f"{folder.name}.away").rename(folder)


def _unread_commit(lab: Lab, patch: pytest.MonkeyPatch) -> None:
    """The commit file is not found, though it is there."""
    lab.sql(_COMMIT)
    patch.setattr(SourceFiles, "commit", lambda _self, _version: None)


def _library_sees_a_hole(lab: Lab, patch: pytest.MonkeyPatch) -> None:
    lab.sql(_COMMIT)

    def fail(*_: object, **__: object) -> None:
        raise DeltaError(
            'Expected contiguous commit files, but found gap: ParsedLogPath { location: "2.json", version: 2 } 4'
        )

    patch.setattr("mirror_assets.source.delta_rs.DeltaTable", fail)


def _dangling_commit(lab: Lab, _: pytest.MonkeyPatch) -> None:
    lab.sql(_COMMIT, "INSERT INTO {t} VALUES (901, 'x', 1)")
    commit = Path(lab.uri) / "_delta_log" / f"{6:020d}.json"
    kept = commit.with_name("kept")
    commit.rename(kept)
    commit.symlink_to("/not/mounted")


def _drop(lab: Lab) -> None:
    record = drive(begin_drop(TABLE), lab.store)
    drive(remove_table(TABLE, record), lab.store)
    drive(advance_rebuild(TABLE, record, RebuildStep.DROPPED), lab.store)
    lab.replicator.poll()


def _half_loaded(lab: Lab) -> None:
    """A first load of which one chunk of three has landed."""
    for number in (50, 60):
        lab.sql(f"INSERT INTO {{t}} VALUES ({number}, 'x', 1)")
    lab.configure(defaults="slices: {max_rows: 6}")
    drive(begin_drop(TABLE), lab.store)  # was killed: the next drop continues it
    _drop(lab)
    running = landed_slices(lab.context, lab.replicator)
    assert next(running).planned.chunk is not None
    lab.sql(_COMMIT)


def _unread_checkpoint(lab: Lab, patch: pytest.MonkeyPatch) -> None:
    _half_loaded(lab)

    def fail(*_: object, **__: object) -> None:
        raise DeltaError("Kernel error: Arrow error: Parquet error: Invalid Parquet file. Corrupt footer")

    patch.setattr("mirror_assets.source.delta_rs.DeltaTable", fail)


def _unread_chunk(lab: Lab, patch: pytest.MonkeyPatch) -> None:
    _half_loaded(lab)
    _not_found("File file:{file} does not exist")(lab, patch)


def _stale_listing(lab: Lab, patch: pytest.MonkeyPatch) -> None:
    """The log lists no newer version than one before what has landed."""
    older = DeltaTable(lab.uri, version=4)
    patch.setattr("mirror_assets.source.delta_rs.DeltaTable", lambda *_, **__: older)


def _added_again(lab: Lab, _: pytest.MonkeyPatch) -> None:
    """A commit removes a file and adds it again, with another time and without statistics."""
    lab.sql(_COMMIT)
    log = Path(lab.uri) / "_delta_log"
    version = DeltaTable(lab.uri).version()
    actions = [json.loads(line) for line in (log / f"{version:020d}.json").read_text().splitlines()]
    (added,) = [action["add"] for action in actions if "add" in action]
    removed = {key: added[key] for key in ("path", "partitionValues", "size")}
    again = {"add": {**added, "modificationTime": added["modificationTime"] + 1, "stats": None}}
    lines = [{"remove": {**removed, "dataChange": True, "deletionTimestamp": 1, "extendedFileMetadata": True}}, again]
    (log / f"{version + 1:020d}.json").write_text("\n".join(json.dumps(line) for line in lines))


def _same_again(lab: Lab, _: pytest.MonkeyPatch) -> None:
    lab.sql("ALTER TABLE {t} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)", "RESTORE {t} TO VERSION AS OF 4")


def _same_columns(lab: Lab, _: pytest.MonkeyPatch) -> None:
    lab.sql(_COMMIT)
    lab.configure("columns: [amount, name, id]")


def _dropped_before(lab: Lab, _: pytest.MonkeyPatch) -> None:
    """The record of a drop is permanent; the table lives again."""
    _drop(lab)
    lab.mirror()
    lab.sql(_COMMIT)


INNOCENTS = (
    Innocent("Spark's block files, taken from a running job", DATA_FILE_MISSING, _block_files, None),
    Innocent(
        "a staged part",
        DATA_FILE_MISSING,
        _not_found(
            "File file:{lab}/landing/_scratchPad/shop.orders/4-x/parts/part-00000-a.snappy.parquet does not exist"
        ),
        "part-00000-a",
    ),
    Innocent("PATH_NOT_FOUND of staged parts", DATA_FILE_MISSING, _missing_parts_folder, "PATH_NOT_FOUND"),
    Innocent(
        "a file of the source that is there", DATA_FILE_MISSING, _not_found("File file:{file} does not exist"), "part-"
    ),
    Innocent(
        "the same, and there at the second look",
        DATA_FILE_MISSING,
        _not_found("File file:{file} does not exist", times=2),
        None,
    ),
    Innocent("a file of an older version that VACUUM took", DATA_FILE_MISSING, _old_file, "does not exist"),
    Innocent(
        "the source is unmounted while it is read", DATA_FILE_MISSING, _while_it_reads(_unmount), "not a Delta table"
    ),
    Innocent("links in place of files lead nowhere", DATA_FILE_MISSING, _while_it_reads(_dangle), "is a link to"),
    Innocent("a loaded version's file that is there", SNAPSHOT_LOST, _unread_chunk, "part-", epoch=3),
    Innocent("a checkpoint that the library can't read", SNAPSHOT_LOST, _unread_checkpoint, None, epoch=3),
    Innocent("a commit that is not found and there", LOG_GAP, _unread_commit, "could not be read"),
    Innocent("the library sees a hole where there is none", LOG_GAP, _library_sees_a_hole, "could not be read"),
    Innocent("a link in place of a commit leads nowhere", LOG_GAP, _dangling_commit, "is a link to"),
    Innocent("a listing that is stale", SOURCE_BROKE, _stale_listing, "is in the log"),
    Innocent("properties set again, RESTORE without another schema", SOURCE_BROKE, _same_again, None),
    Innocent("a file removed and added again by its name", FILE_OVERWRITTEN, _added_again, None),
    Innocent("the same columns, named in another order", SOURCE_BROKE, _same_columns, None),
    Innocent("a drop before this epoch", EPOCH_ENDED, _dropped_before, None, epoch=3),
)
