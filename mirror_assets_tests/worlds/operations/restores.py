"""RESTORE within one schema; there before: 0 to 9, 600 to 602, and after it again."""

from __future__ import annotations

from delta.tables import DeltaTable

from mirror_assets_tests.worlds.operations.operation import Do, Lands, Operation, sql
from mirror_assets_tests.worlds.operations.source import COLUMNS, Source, values


def _restore(commits: int) -> Do:
    """Back by so many commits."""

    def restore(source: Source) -> None:
        DeltaTable.forPath(source.spark, source.uri).restoreToVersion(source.version - commits)

    return restore


OPERATIONS = (
    Operation("update to be restored", sql("UPDATE {t} SET name = 'lost' WHERE id = 1"), Lands(updates=1)),
    Operation("delete to be restored", sql("DELETE FROM {t} WHERE id = 2"), Lands(deletes=1)),
    Operation("insert to be restored", sql(f"INSERT INTO {{t}} ({COLUMNS}) {values([700])}"), Lands(inserts=1)),
    Operation("restore", _restore(3), Lands(inserts=1, updates=None, deletes=1)),
    Operation("restore to the same version", _restore(0)),
    Operation("restore of a restore", _restore(1), Lands(inserts=1, updates=None, deletes=1)),
    Operation("restore again", _restore(1), Lands(inserts=1, updates=None, deletes=1)),
)
