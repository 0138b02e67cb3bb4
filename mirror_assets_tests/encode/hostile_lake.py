"""Two tables whose rows depend on Spark's settings, and their mirrors: the landed rows as text that can be compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from mirror_assets.composition import compose
from mirror_assets.config.load import load_config
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.project import stand_in
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets_tests.landed_slices import landed_slices
from mirror_assets_tests.spark_4 import IS_SPARK_4

# Written by Spark, by column mapping and with deletion vectors; the other by hand, as writers without Spark do.
OURS, CHANGES, FOREIGN = (TableName("shop", name) for name in ("ours", "changes", "foreign"))
# Expressions whose result depends on a setting.
_COMPUTED = {
    "json": ("to_json(named_struct('a', amount, 'b', cast(NULL as int)))", "string"),
    "as_text": ("cast(info as string)", "string"),
    "product": ("cast(amount * amount as string)", "string"),
    "zone": ("cast(at as string)", "string"),
    "digits": ("regexp_replace(name, '\\\\d+', '#')", "string"),
    "inserted": ("cast(array_insert(array(1, 2, 3), -1, id) as string)", "string"),
    "split": ("cast(size(split(name, '')) as int)", "int"),
    "there": ("cast(exists(array(cast(NULL as int), id), x -> x > 100000) as string)", "string"),
    "padded": ("hex(cast(lpad(cast(name as binary), 12, cast('0' as binary)) as binary))", "string"),
    "both": ("cast(concat(cast(name as binary), cast('!' as binary)) as binary)", "binary"),
    "text": ("base64(cast(repeat(name, 40) as binary))", "string"),
    "upper": ("upper(concat(name, 'ß'))", "string"),
    "quotes": ('concat(name, "x")', "string"),
    "has_info": ("info IS NOT NULL", "boolean"),
    "one": ("info.a", "int"),
}
_SCHEMA = {
    "id": "integer",
    "Day": "date",
    "at": "timestamp",
    "wall": "timestamp_ntz",
    "code": "string",
    "amount": "decimal(38,10)",
    "name": "string",
    "info": {
        "type": "struct",
        "fields": [{"name": n, "type": "integer", "nullable": True, "metadata": {}} for n in ("a", "b")],
    },
}
_CHAR = {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}


# For small data, compiling takes longer than the work.
_QUICK = (
    "spark.master: local[2]",
    "spark.sql.codegen.wholeStage: false",
    "spark.sql.codegen.factoryMode: NO_CODEGEN",
    "spark.databricks.delta.snapshotPartitions: 1",
)


@dataclass(frozen=True)
class HostileLake:
    """The lake under `root`; each mirror of it is in a folder of its own there."""

    root: Path

    def make(self, spark: SparkSession) -> None:
        """Make both tables, with all their commits."""
        self._by_spark(spark)
        _by_hand(self.root / "lake" / "foreign")

    def mirror(self, name: str, settings: Sequence[str] = (), *, compares: bool = False) -> dict[str, list[str]]:
        """Mirror both tables into the folder `name`, on the running Spark or a new one, and return the landed rows.

        `settings` are lines of `spark.settings`; `compares` also compares the mirror with its source.
        """
        folder = self.root / name
        folder.mkdir()
        (folder / "mirror.yaml").write_text(_configuration(settings), encoding="utf-8")
        project = compose(load_config(folder / "mirror.yaml"))
        found, replicator = dict[str, list[str]](), stand_in(project.config, project.store)
        for context in project.tables():
            list(landed_slices(context, replicator))
            found[str(context.name)] = _landed(folder / "landing" / context.name.folder)
            if compares:
                replicator.poll()
                found[f"{context.name} compared"] = [reconcile_table(context, replicator).state.value]
        return found

    def _by_spark(self, spark: SparkSession) -> None:
        session, table = spark.newSession(), f"delta.`{self.root / 'lake' / 'ours'}`"
        # As Spark writes timestamps by default.
        session.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
        for stored in ("int96", "datetime"):  # Spark 3.5 asks which calendar is meant
            session.conf.set(f"spark.sql.parquet.{stored}RebaseModeInWrite", "CORRECTED")
        session.sql(
            f"CREATE TABLE {table} (id INT, day DATE, at TIMESTAMP, wall TIMESTAMP_NTZ, code CHAR(5), "
            "amount DECIMAL(38, 10), name STRING, info STRUCT<a: INT, b: STRING>, ratio DOUBLE, "
            "days MAP<DATE, ARRAY<DECIMAL(5, 2)>>, raw BINARY, part STRING) USING delta PARTITIONED BY (part) "
            "TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.columnMapping.mode = 'id', "
            "delta.enableDeletionVectors = true)"
        )
        for statement in (
            f"INSERT INTO {table} {_rows('0, 40')}",
            f"UPDATE {table} SET name = concat(name, ' 2'), day = date_add(day, 1) WHERE id IN (3, 4, 5)",
            f"DELETE FROM {table} WHERE id IN (6, 7)",
            f"INSERT INTO {table} {_rows('40, 44')}",
        ):
            session.sql(statement)


def _rows(ids: str) -> str:
    return (
        "SELECT cast(id AS INT), date_add(DATE'1400-01-01', cast(id AS INT) * 4000), "
        "timestampadd(DAY, cast(id AS INT) * 4000, TIMESTAMP'1400-03-01 12:34:56.123456Z'), "
        "timestampadd(DAY, cast(id AS INT) * 4000, TIMESTAMP_NTZ'1400-03-01 12:34:56.123456'), "
        "concat('c', id % 7), cast(id / 7 AS DECIMAL(38, 10)), concat('n', id), "
        "CASE id % 3 WHEN 0 THEN NULL WHEN 1 THEN named_struct('a', cast(NULL AS INT), 'b', 'x') "
        "ELSE named_struct('a', cast(id AS INT), 'b', cast(NULL AS STRING)) END, "
        "CASE id % 4 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D WHEN 2 THEN double('Infinity') ELSE 0.1D END, "
        "map(DATE'1500-01-01', array(cast(id AS DECIMAL(5, 2)), NULL)), cast(concat('b', id) AS BINARY), "
        f"element_at(array('01', 'a/b=c', 'ü %20', cast(NULL AS STRING)), cast(id % 4 AS INT) + 1) FROM range({ids})"
    )


def _by_hand(folder: Path) -> None:
    """Write a table of two commits without Spark: no time zone or calendar in footers, INT96, other names' case."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    for name, ids in (("part=01/first.parquet", range(8)), ("part=01/second.parquet", range(4, 12))):
        (folder / "part=01").mkdir(exist_ok=True)
        # The second file lacks a column and a nested field.
        whole = "first" in name
        columns = {
            "ID": pa.array(list(ids), pa.int32()),
            "day": pa.array([date(1400 + 40 * n, 3, 1) for n in ids], pa.date32()),
            "at": pa.array(
                [datetime(1700 + 20 * n, 1, 1, 1, 2, 3, tzinfo=timezone.utc) for n in ids], pa.timestamp("us", tz="UTC")
            ),
            "wall": pa.array([_wall(1400 + 40 * n) for n in ids], pa.timestamp("us")),
            "code": pa.array([f"c{n}" for n in ids]),
            "amount": pa.array([Decimal(n) / 4 for n in ids], pa.decimal128(38, 10)),
            "info": pa.array(
                [None if n % 3 == 0 else {"a": n, "b": n} if whole else {"b": n} for n in ids],
                pa.struct([("a", pa.int32()), ("b", pa.int32())] if whole else [("b", pa.int32())]),
            ),
        }
        if whole:
            columns["name"] = pa.array([f"n{n}" for n in ids])
        pq.write_table(pa.table(columns), folder / name, use_deprecated_int96_timestamps=whole and IS_SPARK_4)
    first, second = ({"path": f"part=01/{name}.parquet", "dataChange": True} for name in ("first", "second"))
    added = {"partitionValues": {}, "modificationTime": 1, "size": 0}
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": _CHAR if name == "code" else {}}
        for name, kind in _SCHEMA.items()
    ]
    metadata = {
        "id": "11111111-1111-4111-8111-111111111111",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {"delta.columnMapping.mode": "none"},
        "createdTime": 1,
    }
    features = ["timestampNtz"]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": features,
    }

    def add(file: dict[str, object]) -> dict[str, object]:
        return {"add": {**added, **file, "size": (folder / str(file["path"])).stat().st_size}}

    commits = (
        [{"commitInfo": _INFO}, {"protocol": protocol}, {"metaData": metadata}, add(first)],
        [{"commitInfo": _INFO}, {"remove": {**first, "deletionTimestamp": 2}}, add(second)],
    )
    for version, actions in enumerate(commits):
        text = "\n".join(json.dumps(action) for action in actions)
        (log / f"{version:020}.json").write_text(text, encoding="utf-8")


def _wall(year: int) -> datetime:
    """Return a time without a zone."""
    return datetime(year, 1, 1, 1, 2, 3, tzinfo=timezone.utc).replace(tzinfo=None)


_INFO = {"timestamp": 1, "operation": "WRITE"}


def _configuration(settings: Sequence[str]) -> str:
    computed = "".join(
        f"      {name}: {{sql: {json.dumps(sql)}, type: {kind}}}\n" for name, (sql, kind) in _COMPUTED.items()
    )
    spark = "".join(f"    {line}\n" for line in (*_QUICK, *settings))
    ours = (
        "    where: \"code = 'c3' OR part IS NULL OR day < '1600-1-1'\"\n"
        f"    columns:\n      name: \"sha2(concat(name, 'salt'), 256)\"\n{computed}"
    )
    return (
        f"landing_zone: {{path: ./landing}}\nmirror: {{path: ./mirror}}\nspark:\n  settings:\n{spark}"
        "defaults: {keys: [id], on_break: hold}\n"
        f"tables:\n  {OURS}:\n    source: ../lake/ours\n{ours}"
        f"  {CHANGES}:\n    source: ../lake/ours\n    start: {{version: 1}}\n{ours}"
        f"  {FOREIGN}:\n    source: ../lake/foreign\n    start: {{version: 1}}\n    changes: files\n"
        "    where: \"code <> 'c9' AND id > 0\"\n"
    )


def _landed(folder: Path) -> list[str]:
    """Return the rows of all landing files as text, sorted, with the file's footer where it is Spark's own."""
    rows = []
    for file in sorted(folder.glob("0*.parquet")):
        table = pq.read_table(file)
        rows += [f"{int(file.stem)} {table.schema.names} {row}" for row in table.to_pylist()]
    return sorted(rows)
