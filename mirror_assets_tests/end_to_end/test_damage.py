"""What anybody does to a landing file that waits, or to the key columns, is found and named."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mirror_assets.verify.landed import file_continuity, metadata_unchanged
from mirror_assets_tests.lab import TABLE, Lab

_SECOND = "00000000000000000002.parquet"


# `verify/test_landed.py` has others: deleted, swapped, cut off and changed files, old manifests, missing generations.
_DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted first": lambda folder: (folder / f"{1:020d}.parquet").unlink(),
    "renamed": lambda folder: (folder / _SECOND).rename(folder / "2.parquet"),
    "renamed to the next number": lambda folder: (folder / _SECOND).rename(folder / f"{4:020d}.parquet"),
    "emptied": lambda folder: (folder / _SECOND).write_bytes(b""),
    "copied to the next number": lambda folder: shutil.copy(folder / _SECOND, folder / f"{4:020d}.parquet"),
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
        ("no json", ["id"], "no readable keyColumns"),
        (None, ["id"], "is missing"),
        ('{"keyColumns": ["id"]}', ["name"], "mirror.yaml has keys"),
    ],
)
def test_key_columns_that_differ_are_found(mirrored: Lab, text: str | None, keys: list[str], message: str) -> None:
    metadata = mirrored.folder / "_metadata.json"
    metadata.unlink() if text is None else metadata.write_text(text)
    assert message in metadata_unchanged(mirrored.store, TABLE, keys).message
