"""Reads deletion vectors: bitmaps of row indices (Delta's protocol, "Deletion Vector Format")."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping

from pyroaring import BitMap64

from mirror_assets.source.actions import Vector
from mirror_assets.source.errors import SourceUnreadable
from mirror_assets.source.parsing import z85_decoded
from mirror_assets.source.source_files import SourceFiles

_PORTABLE = 1681511377
_LENGTH, _CHECKSUM, _MAGIC = struct.Struct(">i"), struct.Struct(">I"), struct.Struct("<i")


def read_vectors(files: SourceFiles, uri: str, vectors: Iterable[Vector]) -> Mapping[str, BitMap64]:
    """Return the hidden rows of each vector, by its id; opens each file once.

    Raises FileNotFoundError for a missing file, and SourceUnreadable for one that is not what its vector says.
    """
    wanted = {vector.id: vector for vector in vectors}
    by_file: dict[str | None, list[Vector]] = {}
    for vector in wanted.values():
        by_file.setdefault(vector.path, []).append(vector)
    found: dict[str, BitMap64] = {}
    for path, group in by_file.items():
        place = f"{path or 'a deletion vector in its log'} of {uri}"
        if path is None:
            stored = {vector.id: z85_decoded(vector.stored)[: vector.bytes] for vector in group}
        else:
            with files.open(path) as file:
                stored = {}
                for vector in group:
                    file.seek(vector.offset or 1)
                    stored[vector.id] = _checked(file.read(_LENGTH.size + vector.bytes + _CHECKSUM.size), vector, place)
        found |= {vector.id: _bitmap(stored[vector.id], vector, uri, place) for vector in group}
    return found


def _checked(block: bytes, vector: Vector, place: str) -> bytes:
    """Return the vector's data from its block in a file: length, data, checksum."""
    data = block[_LENGTH.size : -_CHECKSUM.size]
    is_whole = len(data) == vector.bytes and _LENGTH.unpack_from(block)[0] == vector.bytes
    if not is_whole or _CHECKSUM.unpack_from(block, len(block) - _CHECKSUM.size)[0] != zlib.crc32(data):
        raise SourceUnreadable(place, "it is damaged: length or checksum differ")
    return data


def _bitmap(data: bytes, vector: Vector, uri: str, place: str) -> BitMap64:
    if len(data) < _MAGIC.size or _MAGIC.unpack_from(data)[0] != _PORTABLE:
        raise SourceUnreadable(uri, f"{place} has another format than Delta's protocol describes")
    try:
        rows = BitMap64.deserialize(data[_MAGIC.size :])
    except (ValueError, RuntimeError) as error:
        raise SourceUnreadable(uri, f"{place} is damaged: {error}") from error
    if len(rows) != vector.rows:
        raise SourceUnreadable(uri, f"{place} hides {len(rows)} rows, and the log says {vector.rows}")
    return rows
