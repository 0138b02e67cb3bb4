"""Receipts: the identity of a landing file in its Parquet footer, written by Spark's own writer.

Spark's writer takes no key-value metadata, but it writes the schema's field metadata into the footer. So the receipt is
in the metadata of the first column (docs/landing-folder.md).
"""

from __future__ import annotations

import json
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.format import RECEIPT_KEY, Receipt, decode
from mirror_assets.zones import Store

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


def receipt_metadata(receipt: Receipt) -> dict[str, str]:
    """Return the field metadata that puts the receipt into the footer of every file that Spark writes."""
    return {RECEIPT_KEY: receipt.model_dump_json()}


def read_receipt(store: Store, path: str) -> Receipt | None:
    """Read the receipt of the Parquet file at `path`; None for any other file. Raises PathMissing."""
    with store.open(path) as file:
        try:
            metadata = pq.ParquetFile(file).schema_arrow.metadata or {}
        except (pa.ArrowException, OSError):
            return None
    return parse_receipt(path, metadata.get(_SPARK_SCHEMA))


def parse_receipt(path: str, spark_schema: bytes | None) -> Receipt | None:
    """Return the receipt in Spark's schema text, or None if it has none of ours."""
    if spark_schema is None:
        return None
    try:
        fields = json.loads(spark_schema)["fields"]
        text = cast("str", fields[0]["metadata"][RECEIPT_KEY])
        return decode(Receipt, path, text.encode())
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError, ManifestCorrupt):
        return None
