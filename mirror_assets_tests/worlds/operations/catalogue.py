"""The catalogue of operations in chapters, each in the order in which it makes one history."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets_tests.worlds.operations import by_rust, layout, overwrites, restores, schema, streams
from mirror_assets_tests.worlds.operations.operation import NOTHING, Lands, Operation, sql
from mirror_assets_tests.worlds.operations.source import COLUMNS, values

_BEFORE_OVERWRITES = (0, 2, 3, 5, 7, 9, 11, 12, 30, 31, 300, 301)
_BEFORE_RESTORES = (*range(10), 600, 601, 602)
_NEW = f"INSERT INTO {{t}} ({COLUMNS}) "
_INSERT_ROW = f"INSERT ({COLUMNS}) VALUES (s.id, s.id % 2, 'merged', 1)"


def _insert(ids: range, part: str = "id % 2") -> str:
    return _NEW + values(ids, part=part)


def _merge(ids: str, *clauses: str, on: str = "t.id = s.id") -> str:
    return f"MERGE INTO {{t}} t USING (SELECT * FROM VALUES {ids} AS v(id, op)) s ON {on} " + " ".join(clauses)


# What is there before: 0 to 9.
CHANGES = (
    Operation("insert", sql(_insert(range(10, 12))), Lands(inserts=2)),
    Operation(
        "insert from itself", sql(f"{_NEW} SELECT id + 20, part, name, amount FROM {{t}} WHERE id > 9"), Lands(2)
    ),
    Operation("update", sql("UPDATE {t} SET name = 'u' WHERE id IN (1, 2)"), Lands(updates=2)),
    Operation("update that changes no value", sql("UPDATE {t} SET name = name WHERE id = 3"), Lands(updates=1)),
    Operation("update of the partition", sql("UPDATE {t} SET part = part + 1 WHERE id = 5"), Lands(updates=1)),
    Operation("update of a key", sql("UPDATE {t} SET id = 101 WHERE id = 1"), Lands(inserts=1, deletes=1)),
    Operation("key swap", sql("UPDATE {t} SET id = 5 - id WHERE id IN (2, 3)"), Lands(updates=2)),
    Operation("keys that move up", sql("UPDATE {t} SET id = id + 1 WHERE id IN (10, 11)"), Lands(1, 1, 1)),
    Operation("delete of a part of a file", sql("DELETE FROM {t} WHERE id = 4"), Lands(deletes=1)),
    Operation("delete without a match", sql("DELETE FROM {t} WHERE id = 4444"), NOTHING),
    Operation("insert of a partition", sql(_insert(range(200, 204), part="7")), Lands(inserts=4)),
    Operation("delete of a partition", sql("DELETE FROM {t} WHERE part = 7"), Lands(deletes=4)),
)

# Before: 0, 2, 3, 5 to 9, 11, 12, 30, 31, 101.
MERGES = (
    Operation(
        "merge with every clause",
        sql(
            _merge(
                "(5, 'u'), (6, 'd'), (300, 'i')",
                "WHEN MATCHED AND s.op = 'u' THEN UPDATE SET name = 'merged' WHEN MATCHED THEN DELETE",
                f"WHEN NOT MATCHED THEN {_INSERT_ROW}",
                "WHEN NOT MATCHED BY SOURCE AND t.id = 101 THEN DELETE",
                "WHEN NOT MATCHED BY SOURCE AND t.id = 12 THEN UPDATE SET amount = 0",
            )
        ),
        Lands(1, 2, 2),
    ),
    Operation("merge that only inserts", sql(_merge("(301, 'i')", f"WHEN NOT MATCHED THEN {_INSERT_ROW}")), Lands(1)),
    Operation(
        "merge that deletes and inserts one key",
        sql(
            _merge(
                "(7, 'd'), (7, 'i')",
                f"WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN {_INSERT_ROW}",
                on="t.id = s.id AND s.op = 'd'",
            )
        ),
        Lands(updates=1),
    ),
    Operation(
        "merge that deletes one row twice",
        sql(_merge("(8, 'a'), (8, 'b')", "WHEN MATCHED THEN DELETE")),
        Lands(0, 0, 1),
    ),
    Operation(
        "merge without a match",
        sql(_merge("(4444, 'u')", "WHEN MATCHED AND s.op = 'd' THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'x'")),
        NOTHING,
    ),
)

# On any table, whatever else is in it.
FEW = tuple(CHANGES[index] for index in (0, 2, 5, 6, 8))
ON_PARTITIONS = (CHANGES[4], *CHANGES[10:], *overwrites.ON_PARTITIONS, *schema.MAPPED_LATER)


@dataclass(frozen=True)
class Chapter:
    """A run of operations, and the ids of the rows that are there before."""

    name: str
    ids: tuple[int, ...]
    operations: tuple[Operation, ...]


CHAPTERS = (
    Chapter("changes and merges", tuple(range(10)), (*CHANGES, *MERGES)),
    Chapter("overwrites and streams", _BEFORE_OVERWRITES, (*overwrites.OPERATIONS, *streams.OPERATIONS)),
    Chapter("restores and delta-rs", _BEFORE_RESTORES, (*restores.OPERATIONS, *by_rust.OPERATIONS)),
    Chapter("layout and schema", _BEFORE_RESTORES, (*layout.OPERATIONS, *schema.OPERATIONS)),
)
