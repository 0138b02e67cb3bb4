"""Deletion vectors as their files have them; whole or refused."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from pyroaring import BitMap64

from mirror_assets.errors import SettingError
from mirror_assets.lakes.access import PlainAccess
from mirror_assets.source.actions import Vector
from mirror_assets.source.deletion_vectors import read_vectors
from mirror_assets.source.errors import FILE_UNFOUND
from mirror_assets.source.source_files import SourceFiles
from mirror_assets_tests.errors import raises_row

_MAGIC = struct.pack("<i", 1681511377)


def _block(rows: BitMap64, magic: bytes = _MAGIC) -> tuple[bytes, int]:
    """A vector in its file: length, data, checksum; and the length."""
    data = magic + rows.serialize()
    return struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data)), len(data)


@pytest.fixture
def files(tmp_path: Path) -> SourceFiles:
    return SourceFiles(str(tmp_path), PlainAccess(str(tmp_path)))


def test_several_vectors_of_one_file_are_read(tmp_path: Path, files: SourceFiles) -> None:
    small, large = BitMap64([0, 7]), BitMap64([3, 1 << 33, (1 << 33) + 1])
    (one, length), (other, longer) = _block(small), _block(large)
    (tmp_path / "v.bin").write_bytes(b"\x01" + one + other)
    vectors = [Vector("a", "v.bin", length, 2, 1), Vector("b", "v.bin", longer, 3, 1 + len(one))]
    assert read_vectors(files, "t", vectors) == {"a": small, "b": large}


def test_a_vector_that_is_not_what_the_log_says_is_refused(tmp_path: Path, files: SourceFiles) -> None:
    block, length = _block(BitMap64([0, 7]))
    vector = Vector("a", "v.bin", length, 2, 1)
    place = tmp_path / "v.bin"
    place.write_bytes(b"\x01" + block)
    with pytest.raises(SettingError, match=r"v\.bin hides 2 rows, and the log says 3"):
        read_vectors(files, "t", [replace(vector, rows=3)])
    for damaged in (b"\x01" + block[:-9], b"\x01" + block[:9] + b"!" + block[10:], b""):
        place.write_bytes(damaged)
        with pytest.raises(SettingError, match=r"v\.bin is damaged"):
            read_vectors(files, "t", [vector])
    other, length = _block(BitMap64([0]), magic=struct.pack("<i", 1681511376))
    place.write_bytes(b"\x01" + other)
    with pytest.raises(SettingError, match="another format"):
        read_vectors(files, "t", [Vector("a", "v.bin", length, 1, 1)])
    place.unlink()
    with raises_row(FILE_UNFOUND, match=r"v\.bin is not found"):
        read_vectors(files, "t", [vector])
