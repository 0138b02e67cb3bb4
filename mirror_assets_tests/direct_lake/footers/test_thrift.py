"""The compact protocol: whatever is written in it can be gone over to the last byte, and no further."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.direct_lake.footers.thrift import CompactReader, dictionary_header, pages_by_dictionary

Written = tuple[int, bytes]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def _zigzag(value: int) -> bytes:
    return _varint((value << 1) ^ (value >> 63))


def _list(items: list[Written], kind: int = 9) -> Written:
    """All of one type, that of the first."""
    same = [body for item, body in items if item == items[0][0]]
    head = bytes([len(same) << 4]) if len(same) < 15 else b"\xf0" + _varint(len(same))
    element = items[0][0] if items else 5
    return kind, bytes([head[0] | element]) + head[1:] + b"".join(body or b"\x01" for body in same)


def _map(items: list[tuple[int, Written]]) -> Written:
    same = [(key, body) for key, (kind, body) in items if kind == items[0][1][0]]
    kinds = bytes([5 << 4 | items[0][1][0]]) if same else b""
    return 11, _varint(len(same)) + kinds + b"".join(_zigzag(key) + (body or b"\x01") for key, body in same)


def _struct(fields: dict[int, Written]) -> Written:
    out, last = bytearray(), 0
    for number, (kind, body) in sorted(fields.items()):
        near = 0 < number - last < 16
        out += bytes([(number - last) << 4 | kind]) if near else bytes([kind]) + _zigzag(number)
        out += body
        last = number
    return 12, bytes(out) + b"\x00"


_INTEGERS = st.integers(-(2**63), 2**63 - 1)
_PLAIN = st.one_of(
    st.sampled_from([(1, b""), (2, b"")]),
    st.binary(min_size=1, max_size=1).map(lambda byte: (3, byte)),
    st.tuples(st.sampled_from([4, 5, 6]), _INTEGERS.map(_zigzag)),
    st.floats().map(lambda value: (7, struct.pack("<d", value))),
    st.binary(max_size=200).map(lambda data: (8, _varint(len(data)) + data)),
)
_VALUES = st.recursive(
    _PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=20).map(_list),
        st.lists(inner, max_size=3).map(lambda items: _list(items, kind=10)),
        st.lists(st.tuples(st.integers(0, 9), inner), max_size=4).map(_map),
        st.dictionaries(st.integers(1, 40), inner, max_size=5).map(_struct),
    ),
    max_leaves=15,
)


@given(_VALUES, _INTEGERS)
def test_a_skipped_value_is_skipped_to_its_last_byte(value: Written, behind: int) -> None:
    kind, body = value
    reader = CompactReader(body + _zigzag(behind))
    reader.skip(kind)
    assert reader.integer() == behind


@given(_VALUES.filter(lambda value: len(value[1]) > 0), st.integers(0, 10_000))
def test_a_value_cut_short_is_noticed(value: Written, at: int) -> None:
    kind, body = value
    with pytest.raises(IndexError):
        _read_one_and_a_number(CompactReader(body[: at % len(body)]), kind)


def _read_one_and_a_number(reader: CompactReader, kind: int) -> None:
    """Skipping a text that is cut short fails only when something is read behind it."""
    reader.skip(kind)
    reader.integer()


@given(st.binary(max_size=100))
def test_garbage_is_an_error_or_nothing(data: bytes) -> None:
    for parse in (dictionary_header, pages_by_dictionary):
        try:
            parse(data)
        except ValueError as error:
            assert str(error)  # noqa: PT017 both outcomes are right


@pytest.mark.parametrize("field", [b"\x19\xf3", b"\x1b"], ids=["a list of bytes", "a map of bytes to bytes"])
def test_more_items_than_bytes_are_an_error_at_once(field: bytes) -> None:
    """Their number is read before them: to skip so many one by one would never end."""
    endless = b"\xff" * 8 + b"\x7f"
    with pytest.raises(ValueError, match="amid a value"):
        pages_by_dictionary(field + endless + b"\x33" + b"\x00" * 8)
