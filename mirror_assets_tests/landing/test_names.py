"""The grammar of names: what is written is read back, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.landing.errors import NameRefused
from mirror_assets.landing.names import (
    AttemptFolder,
    PartPlace,
    SliceKey,
    TableName,
    attempt_id,
    folder_to_table,
    is_schema_folder,
    landing_name,
    landing_number,
    part_place,
)
from mirror_assets.zones.store import checked

NUMBERS = st.integers(0, 10**20 - 1)
VERSIONS = st.integers(0, 10**8 - 1)
PIECES = st.sampled_from(
    ["a", "orders", ".", ".schema", "/", "_", " ", "ä", "\\", ":", "\x00", "\x7f", "\ud800", "x" * 60]
)
TEXTS = st.lists(PIECES, max_size=5).map("".join) | st.text(max_size=12)


@pytest.mark.parametrize(
    ("text", "folder", "scratch"),
    [
        ("planes", "planes", "_scratchPad/planes"),
        ("nycflights.planes", "nycflights.schema/planes", "_scratchPad/nycflights.planes"),
        ("a b.ä", "a b.schema/ä", "_scratchPad/a b.ä"),
        ("shop.schema", "shop.schema/schema", "_scratchPad/shop.schema"),
    ],
)
def test_table_paths(text: str, folder: str, scratch: str) -> None:
    table = TableName.parse(text)
    assert (str(table), table.folder, table.scratch) == (text, folder, scratch)
    assert table.manifest == f"{folder}/_mirror.json"
    assert table.metadata == f"{folder}/_metadata.json"
    assert table.rebuild_record == f"_rebuild/{text}.json"
    assert table.history(3, 12) == f"{folder}/_mirror/0003-00000000000000000012.json"
    assert table.landing_file(3) == f"{folder}/00000000000000000003.parquet"


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a.",
        ".a",
        "a.b.c",
        "_a",
        "a._b",
        "a/b",
        "a\\b",
        "a:b",
        "a\nb",
        " a",
        "a ",
        "a. b",
        "x" * 129,
        'a"',
        "a\x7f",
    ],
)
def test_refused_table_names(text: str) -> None:
    with pytest.raises(NameRefused) as refused:
        TableName.parse(text)
    assert refused.value.facts["name"] == text


def test_name_that_no_disk_could_hold_is_refused() -> None:
    """A staging folder is one name: 255 bytes are what file systems allow, and two long names have more."""
    assert TableName.parse("x" * 120 + "." + "y" * 100)
    for text in ("x" * 128 + "." + "y" * 128, "ä" * 128):
        with pytest.raises(NameRefused, match="bytes"):
            TableName.parse(text)


@given(TEXTS)
def test_every_accepted_table_name_gives_paths_that_a_store_accepts(text: str) -> None:
    try:
        table = TableName.parse(text)
    except NameRefused:
        return
    assert str(table) == text
    for path in (table.folder, table.scratch, table.rebuild_record, table.history(1, 1), table.landing_file(1)):
        assert len(max(checked(path).split("/"), key=len).encode()) <= 250
    assert folder_to_table(table.folder) == table
    assert is_schema_folder(table.folder.partition("/")[0]) == (table.schema is not None)


@pytest.mark.parametrize(
    ("parse", "names"),
    [
        (folder_to_table, ("a.b", "a.schema", "_scratchPad", "_scratchPad/a", "a/b", "a.schema/_b", "_a.schema/b")),
        (part_place, ("", "_SUCCESS", "part-0.parquet", "PART-00001.parquet", "part-00000.parquet\n")),
        (part_place, ("part-00000/../x.parquet", "0/part-00000.parquet", "../part-00000.parquet")),
        (part_place, ("00000/00000/part-00000.parquet",)),
        (landing_number, ("_00000000000000000001.parquet", "00000000000000000001.PARQUET", "1.parquet", "", "_mirror")),
    ],
)
def test_other_names_are_none(parse: Callable[[str], object], names: tuple[str, ...]) -> None:
    assert [name for name in names if parse(name) is not None] == []


def test_tables_sort_by_schema_and_name() -> None:
    tables = [TableName.parse(text) for text in ("b.a", "z", "a.b", "a", "a.a")]
    assert [str(table) for table in sorted(tables)] == ["a", "z", "a.a", "a.b", "b.a"]


@given(NUMBERS)
def test_landing_names_round_trip(number: int) -> None:
    assert landing_number(landing_name(number)) == number


@given(st.from_regex(r"\d{20}\.parquet\n?|\d{1,21}\.parquet(\.crc)?", fullmatch=True) | st.text(max_size=30))
def test_only_landing_names_have_a_number(name: str) -> None:
    number = landing_number(name)
    assert number is None or landing_name(number) == name


@pytest.mark.parametrize(
    ("name", "write", "partition"),
    [
        ("part-00000.parquet", 0, 0),
        ("part-00012-6f1c0e52-9d3e-4b21-c000.zstd.parquet", 0, 12),
        ("00007/part-00003-6f1c0e52-9d3e-4b21-c001.zstd.parquet", 7, 3),
    ],
)
def test_parts_are_named_as_spark_names_them(name: str, write: int, partition: int) -> None:
    assert part_place(name) == PartPlace(write, partition)


@given(NUMBERS, st.text("0123456789abcdef", min_size=32, max_size=32))
def test_attempt_folders_round_trip(generation: int, attempt: str) -> None:
    table = TableName.parse("shop.orders")
    folder = AttemptFolder(table, generation, attempt)
    assert AttemptFolder.parse(table, folder.path.rpartition("/")[2]) == folder
    assert folder.record == f"_scratchPad/shop.orders/{generation}-{attempt}/slice.json"


@given(st.from_regex(r"\d{1,3}-[0-9a-f]{31,33}", fullmatch=True) | st.text(max_size=40))
def test_only_attempt_folders_are_parsed(name: str) -> None:
    folder = AttemptFolder.parse(TableName.parse("t"), name)
    assert folder is None or folder.path == f"_scratchPad/t/{name}"


SLICES = st.tuples(st.integers(0, 9_999), NUMBERS, NUMBERS).map(
    lambda found: SliceKey(found[0], min(found[1:]), max(found[1:]))
)


# Near each other: keys of small numbers differ in one digit, or in where a number ends.
@given(SLICES)
def test_slice_keys_round_trip(key: SliceKey) -> None:
    assert SliceKey.parse(str(key)) == key
    assert SliceKey.from_record(key.recorded) == key


def test_a_partition_key_is_short() -> None:
    assert str(SliceKey(1, 5, 7)) == "1.5-7"
    assert SliceKey.parse("12.0-8") == SliceKey(12, 0, 8)
    assert SliceKey(1, 5, 7).recorded == f"0001-{5:08d}-{7:08d}", "files in the landing zone do not change"


@given(st.lists(st.tuples(st.integers(0, 9_999), VERSIONS, VERSIONS).map(lambda n: SliceKey(*n)), max_size=6))
def test_recorded_slices_sort_as_text(keys: list[SliceKey]) -> None:
    assert sorted(key.recorded for key in keys) == [key.recorded for key in sorted(keys)]


@pytest.mark.parametrize(
    "text",
    [
        *("", "1", "1.5", "1.5-", "1.-7", ".5-7", "1-5-7", "1.5.7", "1.5-7-9", "1.5-7.9", "1.5--7", "-1.5-7", "+1.5-7"),
        *(
            "1.7-5",
            "01.5-7",
            "1.05-7",
            "1.5-07",
            "1.00-7",
            " 1.5-7",
            "1.5-7 ",
            "1.5-7\n",
            "1. 5-7",
            "1.5\N{EN DASH}7",
            "1,5-7",
        ),
        *(
            "10000.5-7",
            f"1.5-{10**20}",
            "1.5e0-7",
            "0x1.5-7",
            "1_0.5-7",
            "a.b-c",
            "\N{ARABIC-INDIC DIGIT ONE}.5-7",
            "1.\N{FULLWIDTH DIGIT FIVE}-7",
            "1.5-7\x00",
        ),
        f"0001-{5:08d}-{7:08d}",
    ],
)
def test_a_partition_key_is_parsed_strictly(text: str) -> None:
    with pytest.raises(NameRefused) as refused:
        SliceKey.parse(text)
    assert "1.5-7" in str(refused.value) or "its first version is after its last" in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1.0-3",
        f"0001-{4:08d}-{3:08d}",
        f"0001-{1:08d}-{2:08d}\n",
        f"00011-{1:08d}-{2:08d}",
        f"0001-{1:09d}-{2:08d}",
        f"0001-{1:08d}-{2:07d}",
    ],
)
def test_recorded_slices_are_parsed_strictly(text: str) -> None:
    with pytest.raises(NameRefused):
        SliceKey.from_record(text)


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
def test_attempt_ids_sort_by_time_and_name_a_folder(one: int, other: int, random: bytes) -> None:
    first, second = attempt_id(min(one, other), random), attempt_id(max(one, other), random)
    assert (first < second) == (one != other)
    assert AttemptFolder.parse(TableName.parse("t"), f"1-{first}") == AttemptFolder(TableName.parse("t"), 1, first)


def test_attempt_ids_of_one_millisecond_differ_by_chance() -> None:
    assert attempt_id(5, b"\x00" * 10) != attempt_id(5, b"\x00" * 9 + b"\x01")
