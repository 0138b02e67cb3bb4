"""The end of a Parquet file, where its footer is, in one read for most files."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

# A read costs a remote store as much as its latency; footers of a hundred columns are shorter than this, and so are
# files so small that there are many of them, whose dictionaries then cost no read of their own.
_TAIL_BYTES = 256 * 1024
_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
# Behind a footer that is signed, for its columns are encrypted: a nonce and a tag.
_SIGNATURE_BYTES = 28
_END_BYTES = 8  # the footer's length and the magic bytes


@dataclass(frozen=True)
class Tail:
    """The bytes of a file from `start` to its end, which its footer is part of."""

    file: pa.NativeFile
    start: int
    data: bytes
    footer_bytes: int

    @property
    def footer(self) -> bytes:
        """The footer as Thrift wrote it."""
        return self.data[-_END_BYTES - self.footer_bytes : -_END_BYTES]

    def metadata(self) -> pq.FileMetaData:
        """The footer as pyarrow reads it. Raises ValueError when it is none, or its columns are encrypted."""
        try:
            metadata = pq.read_metadata(pa.BufferReader(_MAGIC + self.data[-_END_BYTES - self.footer_bytes :]))
        except OSError as error:  # of its bytes, not of the storage that they came from
            raise ValueError(str(error)) from error
        if metadata.serialized_size + _SIGNATURE_BYTES == self.footer_bytes:
            raise ValueError("its columns are encrypted")  # pyarrow would end the process over them
        return metadata

    def at(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes of the file from `offset`; read only if they lie before the tail."""
        if offset >= self.start:
            return self.data[offset - self.start : offset - self.start + size]
        read: bytes = self.file.read_at(size, offset)
        return read


def read_tail(file: pa.NativeFile, size: int) -> Tail:
    """The tail of a file of `size` bytes. Raises ValueError when it doesn't end as Parquet does."""
    data = _end(file, size, _TAIL_BYTES)
    if data[-len(_MAGIC) :] == _ENCRYPTED:
        raise ValueError("it is encrypted")
    if len(data) < _END_BYTES + len(_MAGIC) or data[-len(_MAGIC) :] != _MAGIC:
        raise ValueError(f"it has not the magic bytes of Parquet at the end of {size} bytes")
    footer_bytes = int.from_bytes(data[-_END_BYTES : -len(_MAGIC)], "little")
    if footer_bytes + _END_BYTES > size:
        raise ValueError(f"it tells of a footer of {footer_bytes} bytes, but has {size} bytes in all")
    if footer_bytes + _END_BYTES > len(data):
        data = _end(file, size, footer_bytes + _END_BYTES)
    return Tail(file, size - len(data), data, footer_bytes)


def _end(file: pa.NativeFile, size: int, wanted: int) -> bytes:
    start = max(0, size - wanted)
    data: bytes = file.read_at(size - start, start)
    if len(data) < size - start:
        raise ValueError(f"it has only {start + len(data)} bytes of {size}")
    return data
