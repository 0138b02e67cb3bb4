"""Airlines: a small table that is now and then replaced as a whole.

Key `carrier`: 16 rows, 16 codes, no gaps. Version 3 overwrites the table, so its feed holds a delete and an insert of
the same key for every carrier: the mirror must make one update of each pair, and two real deletes.
"""

from __future__ import annotations

from mirror_assets.demo.steps import DeltaRsLoad, History, Sql

AIRLINES = History(
    "airlines",
    (
        DeltaRsLoad("first load, written by delta-rs"),
        Sql(
            "AirTran is registered under its short name",
            "UPDATE {table} SET name = 'AirTran Airways' WHERE carrier = 'FL'",
        ),
        Sql(
            "two carriers are entered by hand",
            """
            MERGE INTO {table} t
            USING (SELECT * FROM VALUES ('NK', 'Spirit Air Lines'), ('G4', 'Allegiant Air') AS v (carrier, name)) s
            ON t.carrier = s.carrier
            WHEN NOT MATCHED THEN INSERT *
            """,
        ),
        Sql(
            "the register is delivered again and replaces everything entered by hand",
            "INSERT OVERWRITE {table} SELECT * FROM {airlines}",
        ),
    ),
)
