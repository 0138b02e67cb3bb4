"""The stream over range reads gives the same bytes as the file itself, and never those of two contents."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.lakes.object_store import RangeReader
from mirror_assets.zones import PathChanged
from mirror_assets_tests.worlds.onelake import LoopbackOneLake, Operation
from mirror_assets_tests.worlds.onelake.stores import loopback_store

Move = Callable[[io.RawIOBase | io.BytesIO], object]
MOVES = st.one_of(
    st.integers(-1, 90).map(lambda size: lambda file: file.read(size)),
    st.just(lambda file: file.read(None)),
    st.just(lambda file: file.readall() if isinstance(file, RangeReader) else file.read()),
    st.integers(0, 90).map(lambda size: lambda file: filled(file, size)),
    st.integers(0, 90).map(lambda to: lambda file: file.seek(to)),
    st.integers(0, 60).map(lambda by: lambda file: file.seek(by, io.SEEK_CUR)),
    st.integers(0, 90).map(lambda back: lambda file: file.seek(-min(back, file.seek(0, io.SEEK_END)), io.SEEK_END)),
    st.just(lambda file: file.tell()),
)


def filled(file: io.RawIOBase | io.BytesIO, size: int) -> tuple[int | None, bytes]:
    """What readinto says and does."""
    buffer = bytearray(size)
    return file.readinto(buffer), bytes(buffer)


@given(data=st.binary(max_size=70), known=st.integers(0, 70), ahead=st.integers(1, 40), moves=st.lists(MOVES))
def test_every_way_of_seeking_and_reading_is_that_of_a_file(
    data: bytes, known: int, ahead: int, moves: list[Move]
) -> None:
    requested = []

    def fetch(offset: int, length: int) -> bytes:
        requested.append((offset, length))
        return data[offset : offset + length]

    ours, theirs = RangeReader(len(data), fetch, data[:known], ahead), io.BytesIO(data)
    for move in moves:
        assert move(ours) == move(theirs)
        assert ours.tell() == theirs.tell()
    assert all(length > 0 and offset >= 0 and offset + length <= len(data) for offset, length in requested)


def test_a_large_file_is_read_by_ranges_of_one_content(onelake: LoopbackOneLake) -> None:
    item, data = onelake.new_item(), bytes(range(256)) * 5_000
    item.write("file", data)
    store = loopback_store(onelake, item)
    with store.open("file") as file:
        onelake.log.reset()
        assert file.read(1_000) == data[:1_000]
        assert onelake.log.counts() == {}
        file.seek(-8, io.SEEK_END)
        assert file.read() == data[-8:]
        assert onelake.log.counts() == {Operation.READ: 1}


def test_a_file_that_changes_while_it_is_read_is_not_read_on(onelake: LoopbackOneLake) -> None:
    item = onelake.new_item()
    item.write("file", b"a" * 2_000_000)
    with loopback_store(onelake, item).open("file") as file:
        assert file.read(4) == b"aaaa"
        item.write("file", b"b" * 2_000_000)
        file.seek(1_500_000)
        with pytest.raises(PathChanged):
            file.read(4)
