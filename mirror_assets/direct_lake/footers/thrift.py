"""Reading Thrift's compact protocol, in which Parquet writes its footers and page headers.

Only what the encodings of pages and the headers of dictionaries take: integers, lists, structs, and skipping the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS = (4, 5, 6)


class CompactReader:
    """Reads one value after the other. Raises ValueError for what is no Thrift, IndexError where the bytes end."""

    def __init__(self, data: bytes) -> None:
        """Stand before the first byte."""
        self._data = data
        self._at = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Id and type of every field of a struct; each value is read, or skipped, before the next is asked for."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self.integer()
            yield number, head & 0x0F

    def items(self) -> tuple[int, int]:
        """How many items a list has, and their type."""
        head = self._byte()
        size = head >> 4
        return self._varint() if size == 15 else size, head & 0x0F

    def integer(self) -> int:
        """An integer of 16, 32 or 64 bits."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def skip(self, kind: int) -> None:
        """Go behind a field's value of this type."""
        if kind in _INTEGERS:
            self._varint()
        elif kind == _BINARY:
            size = self._varint()
            self._at += size
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner)
        elif kind in (_LIST, _SET):
            self._skip_items(*self.items())
        elif kind in (_BYTE, _DOUBLE):
            self._at += 1 if kind == _BYTE else 8
        elif kind == _MAP:
            self._skip_map()
        elif kind not in (_TRUE, _FALSE):
            raise ValueError(f"type {kind} at byte {self._at} is none of Thrift's")

    def _skip_items(self, size: int, kind: int) -> None:
        for _ in range(size):
            # A boolean is told by its field's type, but takes a byte in a list.
            self.skip(_BYTE if kind in (_TRUE, _FALSE) else kind)

    def _skip_map(self) -> None:
        size = self._varint()
        kinds = self._byte() if size else 0
        for _ in range(size):
            self._skip_items(1, kinds >> 4)
            self._skip_items(1, kinds & 0x0F)

    def _varint(self) -> int:
        """The hot spot of a report, so it has no calls."""
        data, at = self._data, self._at
        byte = data[at]
        at += 1
        value, shift = byte & 0x7F, 7
        while byte >= 0x80:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        self._at = at
        return value

    def _byte(self) -> int:
        byte = self._data[self._at]
        self._at += 1
        return byte
