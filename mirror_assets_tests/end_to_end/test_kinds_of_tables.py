"""One table of each kind is mirrored and equals its source; `make soak SPARK=4.0` shows it with another Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets_tests.lab import Lab
from mirror_assets_tests.smoke import smoke_first

_FEED = "delta.enableChangeDataFeed = true"
_VECTORS = f"{_FEED}, delta.enableDeletionVectors = true"
_BY_NAME, _BY_ID = (f"delta.columnMapping.mode = '{mode}'" for mode in ("name", "id"))
_MERGE = (
    "MERGE INTO {t} t USING (SELECT 3 AS id UNION ALL SELECT 777) s ON t.id = s.id WHEN MATCHED THEN DELETE "
    "WHEN NOT MATCHED THEN INSERT (id, name, amount) VALUES (s.id, 'new', 7)"
)
_CHANGES = (
    "UPDATE {t} SET amount = amount + 100 WHERE id % 7 = 0",
    _MERGE,
    "UPDATE {t} SET id = 5000 WHERE id = 5",
    "DELETE FROM {t} WHERE id % 11 = 0",
)
_APPENDS = ("INSERT INTO {t} SELECT CAST(id AS INT), 'later', 1.5 FROM range(300, 400)", "OPTIMIZE {t}")
# Renames and drops that only a mapping of columns allows.
_ALTERS = ("ALTER TABLE {t} RENAME COLUMN amount TO total", "UPDATE {t} SET total = 1 WHERE id < 9")


@dataclass(frozen=True)
class Kind:
    """A table's properties, the settings of its mirror, and the statements after the first load."""

    name: str
    properties: str
    setting: str = ""
    slices: str = "{max_commits: 2}"
    keys: str = "[id]"
    statements: tuple[str, ...] = _CHANGES

    def __str__(self) -> str:
        return self.name


KINDS = (
    Kind("feed", _FEED, setting="files: {target_rows: 20}"),
    Kind("deletion vectors", _VECTORS),
    Kind("column mapping by name", f"{_FEED}, {_BY_NAME}", statements=(*_CHANGES, *_ALTERS)),
    Kind("column mapping by id", f"{_FEED}, {_BY_ID}", statements=(*_CHANGES, *_ALTERS)),
    Kind("compact", _VECTORS, "compact: true", "{max_commits: 100}"),
    Kind("append_only", "delta.appendOnly = true", "changes: append_only", keys="[]", statements=_APPENDS),
    Kind("row_tracking", "delta.enableRowTracking = true", "changes: row_tracking", "{max_commits: 100}"),
    Kind("files with deletion vectors", "delta.enableDeletionVectors = true", "changes: files", "{max_commits: 100}"),
    Kind("files with columns mapped by id", _BY_ID, "changes: files", statements=(*_CHANGES, *_ALTERS)),
    Kind("chunked first load", _VECTORS, slices="{max_rows: 100}"),
)


@pytest.mark.parametrize("kind", smoke_first(KINDS, 0), ids=str)
def test_each_kind_of_table_ends_equal_to_its_source(adaptive_spark: SparkSession, tmp_path: Path, kind: Kind) -> None:
    lab = Lab(adaptive_spark, tmp_path)
    lab.configure(kind.setting, f"slices: {kind.slices}", kind.keys)
    rows = "SELECT /*+ REPARTITION(4) */ CAST(id AS INT), concat('n', id), id / 2 FROM range(300)"
    lab.sql(
        f"CREATE TABLE {{t}} (id INT, name STRING, amount DOUBLE) USING delta TBLPROPERTIES ({kind.properties})",
        f"INSERT INTO {{t}} {rows}",
    )
    assert lab.mirror()
    assert lab.is_equal
    lab.sql(*kind.statements)
    assert lab.mirror()
    assert lab.is_equal
