"""Compares a mirror with its source row by row as text, without the product's own `reconcile`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import functions as F

from mirror_assets.markers import ROW_ID
from mirror_assets_tests.worlds.histories.setup import SALT, Choice
from mirror_assets_tests.worlds.operations.source import Source

# A row: its values as text, by column; a column without a value is as good as none.
Bag = Counter[tuple[tuple[str, str], ...]]


def require_equal(source: Source, version: int, mirror: Path, choice: Choice, *, keyless: bool) -> None:
    """The mirror's rows are the chosen ones of the source as of the version; other columns of it were dropped."""
    query = f"SELECT {'_metadata.row_id AS ' + ROW_ID + ', ' if keyless else ''}* FROM {{t}} VERSION AS OF {version}"
    rows, salt = source.query(query), SALT.replace("'", "\\'")
    types = {field.name: field.dataType for field in rows.schema}
    computed = {
        name: F.expr(sql.replace("${SALT}", salt)).cast(kind or types[name]) for name, sql, kind in choice.columns
    }
    rows = (rows.where(choice.where) if choice.where else rows).withColumns(computed)
    wanted = _bag((row.asDict(recursive=True) for row in rows.collect()), rows.columns)
    found = _bag(DeltaTable(str(mirror)).to_pyarrow_table().to_pylist(), rows.columns)
    assert wanted == found, f"version {version}: the mirror lacks {wanted - found}, and has besides {found - wanted}"


def _bag(rows: Iterable[Mapping[str, object]], columns: Iterable[str]) -> Bag:
    names = sorted(columns)
    return Counter(tuple((name, text) for name in names if (text := _text(row.get(name)))) for row in rows)


def _text(value: object) -> str:
    """Nested values are JSON text in the mirror; a member without a value is as good as none."""
    if isinstance(value, str) and value.startswith("{"):
        return _text(json.loads(value))
    if isinstance(value, dict):
        return json.dumps({name: member for name, member in sorted(value.items()) if member is not None})
    return "" if value is None else repr(value)
