"""Deletion vectors as the log describes them (Delta's protocol, "Deletion Vectors")."""

from __future__ import annotations

from typing import TypedDict
from uuid import UUID

from mirror_assets.source.paths import TablePaths
from mirror_assets.source.values import Vector

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_DIGIT = {character: digit for digit, character in enumerate(_Z85)}
# 16 bytes of a UUID, four bytes in five characters; what stands before them is a folder.
_UUID_LENGTH = 20


class RawVector(TypedDict, total=False):
    """A descriptor as an add or remove action has it; `offset` may be missing."""

    storageType: str
    pathOrInlineDv: str
    offset: int | None
    sizeInBytes: int
    cardinality: int


def read_vector(raw: RawVector | None, paths: TablePaths) -> Vector | None:
    """The descriptor as a value. Raises KeyError or ValueError when it is not what Delta writes."""
    if raw is None:
        return None
    kind, stored = raw["storageType"], raw["pathOrInlineDv"]
    offset = raw.get("offset")
    name = f"{kind}{stored}" if offset is None else f"{kind}{stored}@{offset}"
    return Vector(name, _path(kind, stored, paths), raw["sizeInBytes"], raw["cardinality"])


def z85_decoded(text: str) -> bytes:
    """The bytes that a Z85 text stands for (ZeroMQ's RFC 32). Raises ValueError for another text."""
    if len(text) % 5 or not _DIGIT.keys() >= set(text):
        raise ValueError(f"{text!r} is no Z85")
    return b"".join(_four_bytes(text[start : start + 5]) for start in range(0, len(text), 5))


def _four_bytes(characters: str) -> bytes:
    number = 0
    for character in characters:
        number = number * 85 + _DIGIT[character]
    if number >= 1 << 32:
        raise ValueError(f"{characters!r} is no Z85")
    return number.to_bytes(4, "big")


def _path(kind: str, stored: str, paths: TablePaths) -> str | None:
    if kind == "i":
        return None
    if kind == "p":
        return paths.decoded(stored)
    if kind != "u":
        raise ValueError(f"unknown storage type {kind!r} of a deletion vector")
    folder, encoded = stored[:-_UUID_LENGTH], stored[-_UUID_LENGTH:]
    name = f"deletion_vector_{UUID(bytes=z85_decoded(encoded))}.bin"
    return f"{folder}/{name}" if folder else name
