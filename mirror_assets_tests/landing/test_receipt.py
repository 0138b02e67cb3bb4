"""Receipts in Parquet footers: ours are found, anything else has none, and nothing raises."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mirror_assets.landing.format import RECEIPT_KEY, Receipt
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.receipt import parse_receipt, read_receipt, receipt_metadata
from mirror_assets.landing.state import CommitPosition
from mirror_assets.zones import PathMissing, Store
from mirror_assets_tests.landing.staging import INCARNATION, SPARK_SCHEMA, part_bytes, receipt_for, spark_schema
from mirror_assets_tests.zones.memory import MemoryStore

RECEIPT = receipt_for(CommitPosition(1, INCARNATION, 2, 4, 7), SliceKey(1, 8, 9), INCARNATION)
PART = part_bytes(RECEIPT, 0)


def receipt_in(data: bytes) -> Receipt | None:
    store = MemoryStore()
    store.create("t/file", data)
    return read_receipt(store, "t/file")


def parquet(metadata: dict[bytes, bytes] | None) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": [1]}).replace_schema_metadata(metadata), sink)
    return sink.getvalue()


def test_our_receipt_is_found_on_any_store(store: Store) -> None:
    store.create("t/file.parquet", PART)
    assert read_receipt(store, "t/file.parquet") == RECEIPT
    with pytest.raises(PathMissing):
        read_receipt(store, "t/none.parquet")


def test_field_metadata_is_what_is_parsed() -> None:
    assert parse_receipt("p", spark_schema(receipt_metadata(RECEIPT)[RECEIPT_KEY])) == RECEIPT


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PAR1",
        b"PAR1PAR1",
        b"PAR1" + b"\xff" * 4 + b"PAR1",
        b"id,name\n1,a\n",
        PART[:-1],
        PART[: len(PART) // 2],
        parquet(None),
        parquet({b"other": b"x"}),
        parquet({SPARK_SCHEMA: b""}),
        parquet({SPARK_SCHEMA: b"\xff\xfe"}),
        parquet({SPARK_SCHEMA: spark_schema("")}),
    ],
    ids=range(12),
)
def test_foreign_empty_and_truncated_files_have_none(data: bytes) -> None:
    assert receipt_in(data) is None


@pytest.mark.parametrize(
    "schema",
    [
        "1",
        "[]",
        "null",
        '{"fields": []}',
        '{"fields": {}}',
        '{"fields": [1]}',
        '{"fields": [{"metadata": []}]}',
        '{"fields": [{"metadata": {"mirror_assets": 5}}]}',
        '{"fields": [{"metadata": {"mirror_assets": null}}]}',
        '{"fields": [{"metadata": {"mirror_assets": "\\ud800"}}]}',
        "[" * 100_000,
        '{"fields": ' + "9" * 5_000 + "}",
        json.dumps({"fields": [{"metadata": {}}, {"metadata": {RECEIPT_KEY: RECEIPT.model_dump_json()}}]}),
        spark_schema(RECEIPT.model_copy(update={"first_number": "4"}).model_dump_json(warnings=False)).decode(),
        spark_schema(RECEIPT.model_dump_json().replace('"format":1', '"format":2')).decode(),
    ],
    ids=lambda schema: schema[:40],
)
def test_schema_texts_without_a_receipt_of_ours(schema: str) -> None:
    assert parse_receipt("p", schema.encode()) is None
    assert parse_receipt("p", None) is None


@pytest.mark.parametrize("value", [0, 43, 48, 57, 67, 255])
def test_damaged_footers_have_a_receipt_or_none(value: int) -> None:
    """One wrong byte anywhere in the footer: the reader refuses with errors of many kinds."""
    found = [receipt_in(PART[:at] + bytes([value]) + PART[at + 1 :]) for at in range(len(PART) - 900, len(PART))]
    assert set(map(type, found)) <= {Receipt, type(None)}
    assert None in found
