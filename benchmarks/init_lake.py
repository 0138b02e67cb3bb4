"""How `mirror-assets init` does on a lake of many tables whose keys are known: seconds, and keys that are right.

`python -m benchmarks.init_lake --tables 50 --rows 20000`. Half of the tables are written by delta-rs, half by Spark.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import TypeAlias
from uuid import UUID

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.encode.session import open_session, spark_settings

_FEED = {"delta.enableChangeDataFeed": "true"}
_VECTORS, _TRACKING = {"delta.enableDeletionVectors": "true"}, {"delta.enableRowTracking": "true"}
_PROPERTIES: tuple[Mapping[str, str], ...] = (_FEED, _FEED, _FEED | _VECTORS, {}, _TRACKING)
_COMMAND = "import sys; from mirror_assets.cli import main; sys.exit(main())"
_DAY, _NOW = date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=timezone.utc)

_Columns: TypeAlias = dict[str, Sequence[object]]


@dataclass(frozen=True)
class Shape:
    """A kind of table: its key, and its rows by their numbers."""

    name: str
    key: tuple[str, ...]
    columns: Callable[[range, random.Random], _Columns]


def _orders(rows: range, chance: random.Random) -> _Columns:
    return {
        "customer_id": [chance.randrange(500) for _ in rows],
        "order_id": [n + 1_000 for n in rows],
        "status": [chance.choice(["new", "paid", "sent"]) for _ in rows],
        "amount": [Decimal(chance.randrange(10**6)) / 100 for _ in rows],
        "ordered_at": [_NOW + timedelta(seconds=chance.randrange(10**7)) for _ in rows],
    }


def _customers(rows: range, chance: random.Random) -> _Columns:
    return {
        "email": [f"{n}@example.org" for n in rows],
        "customer_id": list(rows),
        "country_code": [chance.choice(["DE", "FR", "US"]) for _ in rows],
    }


def _lines(rows: range, chance: random.Random) -> _Columns:
    return {
        "order_id": [n // 4 for n in rows],
        "line_number": [n % 4 + 1 for n in rows],
        "product_id": [chance.randrange(900) for _ in rows],
        "quantity": [chance.randrange(1, 9) for _ in rows],
    }


def _products(rows: range, chance: random.Random) -> _Columns:
    return {
        "sku": [f"P{n:07d}" for n in rows],
        "colour": [chance.choice(["red", "blue"]) for _ in rows],
        "price": [Decimal(chance.randrange(10**4)) / 100 for _ in rows],
    }


def _rates(rows: range, chance: random.Random) -> _Columns:
    return {
        "currency": [("USD", "GBP", "JPY", "CHF")[n % 4] for n in rows],
        "rate_date": [_DAY + timedelta(days=n // 4) for n in rows],
        "rate": [chance.random() for _ in rows],
    }


def _readings(rows: range, chance: random.Random) -> _Columns:
    return {
        "device_id": [n % 50 for n in rows],
        "read_at": [_NOW + timedelta(minutes=n // 50) for n in rows],
        "value": [chance.random() for _ in rows],
        "battery": [chance.randrange(100) for _ in rows],
    }


def _employees(rows: range, chance: random.Random) -> _Columns:
    return {
        "EmployeeKey": list(rows),
        "BadgeNumber": [n * 3 for n in rows],
        "ManagerKey": [None if n < 9 else n // 9 for n in rows],
        "Level": [chance.randrange(9) for _ in rows],
    }


def _clicks(rows: range, chance: random.Random) -> _Columns:
    return {
        "page_id": [chance.randrange(20) for _ in rows],
        "session_id": [chance.randrange(50) if chance.random() < 0.9 else None for _ in rows],
        "seconds": [chance.randrange(5) for _ in rows],
    }


def _stock(rows: range, chance: random.Random) -> _Columns:
    return {
        "warehouse_id": [n % 20 for n in rows],
        "product_id": [n // 20 for n in rows],
        "on_hand": [chance.randrange(100) for _ in rows],
    }


def _nights(rows: range, chance: random.Random) -> _Columns:
    return {
        "hotel_id": [n % 10 for n in rows],
        "room_number": [n // 10 % 20 for n in rows],
        "night": [_DAY + timedelta(days=n // 200) for n in rows],
        "guest_id": [chance.randrange(3_000) for _ in rows],
    }


def _parcels(rows: range, chance: random.Random) -> _Columns:
    return {
        "carrier": [chance.choice(["a", "b"]) for _ in rows],
        "parcel_uuid": [str(UUID(int=chance.getrandbits(128))) for _ in rows],
        "weight": [chance.randrange(10**5) for _ in rows],
    }


def _sales(rows: range, chance: random.Random) -> _Columns:
    return {
        "date_key": [20260101 + n // 400 for n in rows],
        "store_key": [n % 20 for n in rows],
        "product_key": [n // 20 % 20 for n in rows],
        "units": [chance.randrange(50) for _ in rows],
    }


SHAPES = (
    Shape("orders", ("order_id",), _orders),
    Shape("customers", ("customer_id",), _customers),
    Shape("order_lines", ("order_id", "line_number"), _lines),
    Shape("products", ("sku",), _products),
    Shape("daily_rates", ("currency", "rate_date"), _rates),
    Shape("readings", ("device_id", "read_at"), _readings),
    Shape("employees", ("EmployeeKey",), _employees),
    Shape("clicks", (), _clicks),
    Shape("stock", ("warehouse_id", "product_id"), _stock),
    Shape("nights", ("hotel_id", "room_number", "night"), _nights),
    Shape("parcels", ("parcel_uuid",), _parcels),
    Shape("fact_sales", ("date_key", "store_key", "product_key"), _sales),
)


def main() -> None:
    """Make the lake, run `init` and `run` as commands, and print what they took and found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.init_lake", description=__doc__)
    parser.add_argument("--tables", type=int, default=50, help="how many (default: 50)")
    parser.add_argument("--rows", type=int, default=20_000, help="of each table (default: 20,000)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        keys = _make(Path(folder) / "lake", options.tables, options.rows)
        _report(keys, *_init(Path(folder), "--no-spark"))
        _report(keys, *_init(Path(folder)))
        seconds, _ = _command(Path(folder), "run", "--json")
        print(f"run on the file as it was written: {seconds:.1f} s, exit code 0")


def _make(lake: Path, tables: int, rows: int) -> Mapping[str, tuple[str, ...]]:
    """Write the tables; return the key of each by its path."""
    spark, keys = open_session(spark_settings()), {}
    for number in range(tables):
        shape = SHAPES[number % len(SHAPES)]
        path = f"area{number // len(SHAPES)}/{shape.name}"
        chance = random.Random(number)  # noqa: S311 a lake that can be had again
        columns = pa.table(dict(shape.columns(range(rows), chance)))
        _write(
            spark if (number + number // len(SHAPES)) % 2 else None,
            lake / path,
            columns,
            _PROPERTIES[number % len(_PROPERTIES)],
        )
        keys[path] = shape.key
    spark.stop()
    return keys


def _write(spark: SparkSession | None, path: Path, rows: pa.Table, properties: Mapping[str, str]) -> None:
    """Write by Spark, or by delta-rs, which can't switch on what only Spark writes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if spark is None:
        write_deltalake(path, rows, configuration={n: v for n, v in properties.items() if n in _FEED})
        return
    listed = ", ".join(f"{name} = {value}" for name, value in properties.items())
    spark.createDataFrame(rows).createOrReplaceTempView("rows")
    having = f"TBLPROPERTIES ({listed})" if listed else ""
    spark.sql(f"CREATE TABLE delta.`{path}` USING delta {having} AS SELECT * FROM rows")


def _init(folder: Path, *options: str) -> tuple[float, list[dict[str, object]]]:
    return _command(folder, "init", "lake", "--force", "--json", *options)


def _command(folder: Path, *arguments: str) -> tuple[float, list[dict[str, object]]]:
    """Run a command in a process of its own; return its seconds and its records."""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", _COMMAND, *arguments], cwd=folder, check=True, stdout=subprocess.PIPE)
    return time.monotonic() - began, json.loads(done.stdout)


def _report(keys: Mapping[str, tuple[str, ...]], seconds: float, records: list[dict[str, object]]) -> None:
    found = {str(record["path"]): record for record in records}
    proposed = {path: tuple(record["keys"]) for path, record in found.items() if isinstance(record["keys"], list)}
    right = sum(set(proposed.get(path, ())) == set(key) for path, key in keys.items())
    ready = sum(record["missing"] is None for record in records)
    proven = sum(record["proof"] == "proven" for record in records)
    print(
        f"{len(found)} tables in {seconds:.1f} s: {sum(map(bool, proposed.values()))} keys proposed, {proven} proven; "
        f"{right} of {len(keys)} right (none where there is none), {ready} to mirror"
    )
    for path, key in keys.items():
        if set(proposed.get(path, ())) != set(key):
            print(f"  {path}: {proposed.get(path)} for {key}")


if __name__ == "__main__":
    main()
