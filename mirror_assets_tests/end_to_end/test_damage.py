"""What anybody does to a landing file that waits, or to the key columns, is found and named."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from mirror_assets.markers import ROW_MARKER
from mirror_assets.verify.landed import file_continuity, metadata_unchanged
from mirror_assets_tests.lab import TABLE, Lab

_SECOND = "00000000000000000002.parquet"


def _rewrite(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    table = pq.read_table(path)
    pq.write_table(change(table), path, compression="zstd")


def _other_marker(table: pa.Table) -> pa.Table:
    markers = pc.add(table[ROW_MARKER], pa.scalar(1, pa.int32()))
    return table.set_column(table.num_columns - 1, table.schema.field(ROW_MARKER), markers)


def _other_value(table: pa.Table) -> pa.Table:
    return table.set_column(2, table.schema.field("amount"), pc.add(table["amount"], 1.0))


def _swap(folder: Path) -> None:
    first, second, kept = folder / f"{1:020d}.parquet", folder / _SECOND, folder / "_kept"
    first.rename(kept)
    second.rename(first)
    kept.rename(second)


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


_DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted first": lambda folder: (folder / f"{1:020d}.parquet").unlink(),
    "deleted": lambda folder: (folder / _SECOND).unlink(),
    "deleted last": lambda folder: (folder / f"{3:020d}.parquet").unlink(),
    "renamed": lambda folder: (folder / _SECOND).rename(folder / "2.parquet"),
    "renamed to the next number": lambda folder: (folder / _SECOND).rename(folder / f"{4:020d}.parquet"),
    "truncated": lambda folder: _truncate(folder / _SECOND),
    "emptied": lambda folder: (folder / _SECOND).write_bytes(b""),
    "swapped": _swap,
    "copied to the next number": lambda folder: shutil.copy(folder / _SECOND, folder / f"{4:020d}.parquet"),
    "rows reversed": lambda folder: _rewrite(folder / _SECOND, lambda t: t.take(list(range(t.num_rows))[::-1])),
    "one value": lambda folder: _rewrite(folder / _SECOND, _other_value),
    "one marker": lambda folder: _rewrite(folder / _SECOND, _other_marker),
    "one byte": lambda folder: (folder / _SECOND).write_bytes(
        (folder / _SECOND).read_bytes().replace(b"PAR1", b"PAR2", 1)
    ),
}


def test_an_undamaged_folder_passes(mirrored: Lab) -> None:
    assert file_continuity(mirrored.store, TABLE, 0).passed
    mirrored.replicator.poll()
    assert file_continuity(mirrored.store, TABLE, 3).passed
    assert file_continuity(mirrored.store, TABLE, None).passed
    assert metadata_unchanged(mirrored.store, TABLE, ["id"]).passed
    shutil.rmtree(mirrored.folder / "_ProcessedFiles")
    assert file_continuity(mirrored.store, TABLE, 3).passed


@pytest.mark.parametrize(("damage", "applied"), [*((damage, 0) for damage in _DAMAGES), ("deleted first", None)])
def test_damage_is_found_and_named(mirrored: Lab, damage: str, applied: int | None) -> None:
    _DAMAGES[damage](mirrored.folder)
    result = file_continuity(mirrored.store, TABLE, applied)
    assert not result.passed
    assert any(f"{number:020d}.parquet" in result.message for number in (1, 2, 3, 4))


def test_the_last_file_must_stay_even_when_applied(mirrored: Lab) -> None:
    mirrored.replicator.poll()
    (mirrored.folder / f"{3:020d}.parquet").unlink()
    assert "the last file must stay" in file_continuity(mirrored.store, TABLE, 3).message


@pytest.mark.parametrize(
    ("text", "keys", "message"),
    [
        ('{"keyColumns": ["name"]}', ["id"], "_metadata.json declares"),
        ('{"keyColumns": ["id", "name"]}', ["id"], "_metadata.json declares"),
        ('{"keyColumns": []}', ["id"], "_metadata.json declares"),
        ("no json", ["id"], "no readable keyColumns"),
        (None, ["id"], "is missing"),
        ('{"keyColumns": ["id"]}', ["name"], "mirror.yaml has keys"),
    ],
)
def test_key_columns_that_differ_are_found(mirrored: Lab, text: str | None, keys: list[str], message: str) -> None:
    metadata = mirrored.folder / "_metadata.json"
    metadata.unlink() if text is None else metadata.write_text(text)
    assert message in metadata_unchanged(mirrored.store, TABLE, keys).message


def test_a_manifest_that_is_not_the_newest_generation_is_found(mirrored: Lab) -> None:
    history = mirrored.folder / "_mirror" / f"0001-{2:020d}.json"
    (mirrored.folder / "_mirror.json").write_bytes(history.read_bytes())
    assert "is not the newest generation" in file_continuity(mirrored.store, TABLE, 0).message


def test_a_missing_generation_is_found(mirrored: Lab) -> None:
    (mirrored.folder / "_mirror" / f"0001-{2:020d}.json").unlink()
    assert f"{2:020d}.json is missing" in file_continuity(mirrored.store, TABLE, 0).message
