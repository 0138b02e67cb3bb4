"""Reads deletion vectors: bitmaps of row indices (Delta's protocol, "Deletion Vector Format")."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping

from pyroaring import BitMap64

from mirror_assets.lakes.errors import SOURCE_UNREADABLE
from mirror_assets.source.actions import Vector
from mirror_assets.source.errors import FILE_UNFOUND
from mirror_assets.source.log_paths import hadoop_path
from mirror_assets.source.parsing import z85_decoded
from mirror_assets.source.source_files import SourceFiles

_PORTABLE = 1681511377
_LENGTH, _CHECKSUM, _MAGIC = struct.Struct(">i"), struct.Struct(">I"), struct.Struct("<i")


def read_vectors(files: SourceFiles, uri: str, vectors: Iterable[Vector]) -> Mapping[str, BitMap64]:
    """Return the hidden rows of each vector, by its id; opens each file once, remote ones concurrently.

    Raises FILE_UNFOUND for a missing file, and SourceUnreadable for one that is not what its vector says.
    """
    by_file: dict[str | None, dict[str, Vector]] = {}
    for vector in vectors:
        by_file.setdefault(vector.path, {})[vector.id] = vector

    def read(path: str | None) -> dict[str, BitMap64]:
        stored = by_file[path].values()
        if path is None:
            place = "a deletion vector in its log"
            return {one.id: _bitmap(z85_decoded(one.stored)[: one.bytes], one, uri, place) for one in stored}
        found = {}
        try:
            with files.open(path) as file:
                for vector in stored:
                    file.seek(vector.offset or 1)
                    block = file.read(_LENGTH.size + vector.bytes + _CHECKSUM.size)
                    found[vector.id] = _bitmap(_checked(block, vector, uri, path), vector, uri, path)
        except FileNotFoundError as error:
            raise FILE_UNFOUND(place=uri, why=f"{hadoop_path(uri, path)} is not found") from error
        return found

    return {name: rows for of_file in files.each(read, list(by_file)) for name, rows in of_file.items()}


def _checked(block: bytes, vector: Vector, uri: str, place: str) -> bytes:
    """Return the vector's data from its block in a file: length, data, checksum."""
    data = block[_LENGTH.size : -_CHECKSUM.size]
    is_whole = len(data) == vector.bytes and _LENGTH.unpack_from(block)[0] == vector.bytes
    if not is_whole or _CHECKSUM.unpack_from(block, len(block) - _CHECKSUM.size)[0] != zlib.crc32(data):
        raise SOURCE_UNREADABLE(uri=uri, why=f"{place} is damaged: length or checksum differ")
    return data


def _bitmap(data: bytes, vector: Vector, uri: str, place: str) -> BitMap64:
    if len(data) < _MAGIC.size or _MAGIC.unpack_from(data)[0] != _PORTABLE:
        raise SOURCE_UNREADABLE(uri=uri, why=f"{place} has another format than Delta's protocol describes")
    try:
        rows = BitMap64.deserialize(data[_MAGIC.size :])
    except (ValueError, RuntimeError) as error:
        raise SOURCE_UNREADABLE(uri=uri, why=f"{place} is damaged: {error}") from error
    if len(rows) != vector.rows:
        raise SOURCE_UNREADABLE(uri=uri, why=f"{place} hides {len(rows)} rows, and the log says {vector.rows}")
    return rows
