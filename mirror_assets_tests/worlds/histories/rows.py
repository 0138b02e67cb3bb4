"""Statements that add, change and remove single rows."""

from __future__ import annotations

from mirror_assets_tests.worlds.histories.statement import Pick, Statement, new_rows, of_kind, sql
from mirror_assets_tests.worlds.operations import streams
from mirror_assets_tests.worlds.operations.source import COLUMNS, Source, texts


def _insert_into_every_text(source: Source, pick: Pick) -> None:
    names = texts(source)
    filled = "".join(f", 'filled' AS {name}" for name in names)
    listed = ", ".join([COLUMNS, *names])
    source.sql(f"INSERT INTO {{t}} ({listed}) SELECT *{filled} FROM ({new_rows(pick)})")


def _append(source: Source, pick: Pick) -> None:
    """As a job that copies files does; new columns come with them."""
    rows = source.fitted(f"SELECT *, 'e{pick.n}' AS evolved{pick.n % 3} FROM ({new_rows(pick)})")
    source.save(rows, {"mergeSchema": "true"}, mode="append")


def _stream(source: Source, pick: Pick) -> None:
    streams.write(source, streams.read(source, source.fitted(new_rows(pick)), "append"), "append")


def _update_text(source: Source, pick: Pick) -> None:
    """The new value depends on the one before, so that a change applied twice is seen."""
    names = ["name", *texts(source)]
    name = names[pick.n % len(names)]
    pick.sql(source, f"UPDATE {{t}} SET {name} = concat(coalesce({name}, ''), 'u') WHERE id IN ({{ids}})")


def _rotate_keys(source: Source, pick: Pick) -> None:
    """Keys change, swap, or go round: a permutation of these keys, whichever of them are there."""
    ring = sorted({*pick.ids, *pick.others})
    cases = " ".join(f"WHEN {old} THEN {new}" for old, new in zip(ring, [*ring[1:], ring[0]], strict=True))
    source.sql(f"UPDATE {{t}} SET id = CASE id {cases} END WHERE id IN ({', '.join(map(str, ring))})")


def _merge(ops: str, *clauses: str, on: str = "t.id = s.id") -> Statement:
    """`ops` are given to the picked ids in turn."""

    def run(source: Source, pick: Pick) -> None:
        rows = ", ".join(f"({id_}, '{ops[(pick.n + at) % len(ops)]}')" for at, id_ in enumerate(pick.ids))
        using = f"MERGE INTO {{t}} t USING (SELECT * FROM VALUES {rows} AS v(id, op)) s ON {on} "
        pick.sql(source, using + " ".join(clauses))

    return Statement(f"merge: {' '.join(clauses)}"[:60], run, weight=3)


_ADD = f"INSERT ({COLUMNS}) VALUES (s.id, s.id % 2, concat('merged', s.id), 1)"
_CHANGE = "UPDATE SET name = concat(coalesce(t.name, ''), 'm'), amount = t.amount + 1"

STATEMENTS = of_kind(
    "rows",
    Statement("insert", sql("INSERT INTO {t} ({columns}) {new}"), appends=True, weight=6),
    Statement("update", _update_text, weight=6),
    Statement("delete", sql("DELETE FROM {t} WHERE id IN ({ids})"), weight=4),
    Statement("keys changed, swapped or moved round", _rotate_keys, weight=6),
    _merge("ui", f"WHEN MATCHED THEN {_CHANGE} WHEN NOT MATCHED THEN {_ADD}"),
    _merge(
        "udi",
        f"WHEN MATCHED AND s.op = 'd' THEN DELETE WHEN MATCHED THEN {_CHANGE}",
        f"WHEN NOT MATCHED AND s.op <> 'd' THEN {_ADD}",
        "WHEN NOT MATCHED BY SOURCE AND t.id % 5 = {n} THEN DELETE",
        "WHEN NOT MATCHED BY SOURCE AND t.id % 3 = {part} THEN UPDATE SET amount = t.amount + 1",
    ),
    _merge("u", f"WHEN MATCHED AND t.id % 2 = {{part}} THEN {_CHANGE}"),
    _merge("d", "WHEN MATCHED THEN DELETE"),
    Statement("merge that only inserts", _merge("i", f"WHEN NOT MATCHED THEN {_ADD}").run, appends=True),
    Statement(
        "insert from itself",
        sql(
            "INSERT INTO {t} ({columns}) SELECT id + 20, part, name, amount FROM {t} "
            "WHERE id IN ({ids}) AND id + 20 NOT IN (SELECT id FROM {t})"
        ),
        appends=True,
    ),
    Statement("insert into every text column", _insert_into_every_text, appends=True, weight=4),
    Statement("append that may add a column", _append, appends=True, breaks=True),
    Statement("streaming append", _stream, appends=True),
    Statement("update that changes no value", sql("UPDATE {t} SET name = name WHERE id IN ({ids})")),
    Statement("update of the partition", sql("UPDATE {t} SET part = (part + 1) % 3 WHERE id IN ({ids})")),
    Statement("update of every row", sql("UPDATE {t} SET amount = amount + 1")),
    Statement("delete of a partition", sql("DELETE FROM {t} WHERE part = {part}")),
    Statement("truncate", sql("TRUNCATE TABLE {t}")),
)
