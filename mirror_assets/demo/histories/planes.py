"""Planes: deletion vectors, an added column of dates, and one key deleted and inserted in one MERGE.

Key `tailnum`: 3,322 rows, 3,322 registrations, no gaps.
"""

from __future__ import annotations

from mirror_assets.demo.steps import History, Sql

PLANES = History(
    "planes",
    (
        Sql(
            "first load, without the registrations from N900 on",
            """
            CREATE TABLE {table} USING delta TBLPROPERTIES ({properties}, 'delta.enableDeletionVectors' = 'true') AS
            SELECT * FROM {planes} WHERE tailnum NOT LIKE 'N9%'
            """,
        ),
        Sql(
            "registrations from N900 on arrive late",
            "INSERT INTO {table} SELECT * FROM {planes} WHERE tailnum LIKE 'N9%'",
        ),
        Sql(
            "a missing year of manufacture is taken from the oldest plane of the same model",
            """
            MERGE INTO {table} t
            USING (SELECT model, min(year) AS year FROM {planes} GROUP BY model HAVING min(year) IS NOT NULL) s
            ON t.model = s.model AND t.year IS NULL
            WHEN MATCHED THEN UPDATE SET year = s.year
            """,
        ),
        Sql(
            "a plane is registered anew: key N10156 becomes N10157",
            "UPDATE {table} SET tailnum = 'N10157' WHERE tailnum = 'N10156'",
        ),
        Sql(
            "planes with piston engines leave the fleet",
            "DELETE FROM {table} WHERE engine IN ('Reciprocating', '4 Cycle')",
        ),
        Sql("a column for the first flight of the year", "ALTER TABLE {table} ADD COLUMNS (first_flight DATE)"),
        Sql(
            "first flights are taken from the flights",
            """
            MERGE INTO {table} t
            USING (SELECT tailnum, min(date) AS first_flight
                   FROM {flights} WHERE dep_time IS NOT NULL GROUP BY tailnum) s
            ON t.tailnum = s.tailnum
            WHEN MATCHED THEN UPDATE SET first_flight = s.first_flight
            """,
        ),
        Sql(
            "N102UW changes hands: its record is closed and opened again, a delete and an insert of one key",
            """
            MERGE INTO {table} t
            USING (SELECT stack(2, tailnum, CAST(NULL AS STRING)) AS closed, *
                   FROM {planes} WHERE tailnum = 'N102UW') s
            ON t.tailnum = s.closed
            WHEN MATCHED THEN DELETE
            WHEN NOT MATCHED THEN INSERT (tailnum, year, type, manufacturer, model, engines, seats, speed, engine)
              VALUES (s.tailnum, s.year, s.type, s.manufacturer, s.model, s.engines, 187, s.speed, s.engine)
            """,
        ),
        Sql("small files are put together", "OPTIMIZE {table}"),
    ),
)
