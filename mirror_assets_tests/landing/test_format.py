"""Control files: what we write is read back; whatever else stands there is ManifestCorrupt and nothing worse."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeAlias

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.format import (
    Entry,
    Manifest,
    MarkerCounts,
    SliceKind,
    SliceRecord,
    StagedPart,
    decode,
    encode,
)
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.rebuild import RebuildRecord, RebuildStep
from mirror_assets.landing.state import CommitPosition
from mirror_assets_tests.landing.staging import COLUMNS, INCARNATION, KEYS, new_record, receipt_for, with_verdicts

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

KEY = SliceKey(1, 8, 9)
POSITION = CommitPosition(1, INCARNATION, 2, 4, 7)
PART = StagedPart(name="part-00000.parquet", etag="e", bytes=9, sha256=None, markers=MarkerCounts(inserts=3, deletes=1))
RECORD = with_verdicts(new_record(POSITION, KEY, INCARNATION, (PART, PART.model_copy(update={"etag": "f"}))))
MANIFEST = Manifest(
    incarnation=INCARNATION,
    epoch=1,
    source_table_id="source",
    source_schema="{}",
    keys=KEYS,
    columns=COLUMNS,
    generation=2,
    attempt=INCARNATION,
    slice=KEY,
    kind=SliceKind.CHANGES,
    covered=9,
    covered_commit_ms=None,
    first_number=4,
    next_number=5,
    entries=(Entry(staged="s/p", number=4, etag="e", bytes=9, sha256="ab", markers=MarkerCounts(updates=2)),),
)
RECEIPT = receipt_for(POSITION, KEY, INCARNATION)
REBUILD = RebuildRecord(table="shop.orders", epoch=2, step=RebuildStep.LOADING)
RECORDS: tuple[pydantic.BaseModel, ...] = (RECORD, MANIFEST, RECEIPT, REBUILD)

VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def read_or_corrupt(model: type[pydantic.BaseModel], data: bytes) -> pydantic.BaseModel | None:
    """The record, or None for ManifestCorrupt with a message that can be printed; any other error goes up."""
    try:
        return decode(model, "the/path", data)
    except ManifestCorrupt as error:
        return None if str(error).encode() and error.facts["path"] == "the/path" else RECEIPT


def spoilt(record: pydantic.BaseModel, spoil: Callable[[dict[str, Json]], object]) -> bytes:
    """The record's JSON after `spoil` changed it."""
    document: dict[str, Json] = json.loads(encode(record))
    spoil(document)
    return json.dumps(document).encode()


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_records_round_trip(record: pydantic.BaseModel) -> None:
    assert decode(type(record), "path", encode(record)) == record


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'{"format": 1',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"1" * 10_000,
        b'"\\ud800"',
        b"NaN",
        b"PAR1",
    ],
    ids=lambda data: repr(data[:12]),
)
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_garbage_is_corrupt(record: pydantic.BaseModel, data: bytes) -> None:
    assert read_or_corrupt(type(record), data) is None


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_unknown_and_missing_fields_are_corrupt(record: pydantic.BaseModel) -> None:
    assert read_or_corrupt(type(record), spoilt(record, lambda document: document.update(new_field=1))) is None
    for name, field in type(record).model_fields.items():
        document = json.loads(encode(record))
        del document[name]
        missing = read_or_corrupt(type(record), json.dumps(document).encode())
        assert (missing is None) == field.is_required(), name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", 2),
        ("epoch", 0),
        ("epoch", True),
        ("epoch", "1"),
        ("epoch", 1.0),
        ("generation", -1),
        ("generation", None),
        ("covered", -2),
        ("keys", "id"),
        ("keys", [1]),
        ("kind", "other"),
        ("entries", [{}]),
        ("entries", None),
        ("slice", "0001-8-9"),
        ("slice", f"0001-{9:08d}-{8:08d}"),
        ("covered", 1e300),
    ],
)
def test_wrong_values_are_corrupt(name: str, value: Json) -> None:
    sound = spoilt(MANIFEST, lambda _: None)
    assert read_or_corrupt(Manifest, sound) == MANIFEST
    assert read_or_corrupt(Manifest, spoilt(MANIFEST, lambda document: document.update({name: value}))) is None


def test_a_number_without_end_is_corrupt() -> None:
    text = spoilt(MANIFEST, lambda document: document.update(covered="@")).replace(b'"@"', b"1" + b"0" * 5_000)
    assert read_or_corrupt(Manifest, text) is None


def test_corrupt_names_the_field_and_the_next_step() -> None:
    with pytest.raises(ManifestCorrupt, match=r"entries\.0\.number.*rebuild"):
        decode(Manifest, "p", spoilt(MANIFEST, lambda document: document["entries"][0].update(number=0)))  # type: ignore[index,union-attr]


@given(st.data(), st.sampled_from(RECORDS))
def test_damaged_bytes_are_read_or_corrupt(data: st.DataObject, record: pydantic.BaseModel) -> None:
    sound = encode(record)
    start = data.draw(st.integers(0, len(sound)))
    end = data.draw(st.integers(start, min(len(sound), start + 40)))
    read_or_corrupt(type(record), sound[:start] + data.draw(st.binary(max_size=8)) + sound[end:])


@given(st.data(), st.sampled_from(RECORDS))
def test_values_of_another_kind_are_read_or_corrupt(data: st.DataObject, record: pydantic.BaseModel) -> None:
    name = data.draw(st.sampled_from(sorted(type(record).model_fields)))
    found = read_or_corrupt(type(record), spoilt(record, lambda document: document.update({name: data.draw(VALUES)})))
    if isinstance(found, SliceRecord):
        assert SliceKey.from_record(found.slice.recorded) == found.slice
