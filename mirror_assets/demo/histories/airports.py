"""Airports: a nested column, a key that changes, and two keys that change places in one UPDATE.

Key `faa`: 1,458 rows, 1,458 codes, no gaps (`name` isn't unique: 14 names are used more than once). `location` is a
struct, which the mirror shows as JSON text.
"""

from __future__ import annotations

from mirror_assets.demo.steps import History, Sql

AIRPORTS = History(
    "airports",
    (
        Sql(
            "first load, with the codes of Baltimore and Washington mixed up",
            """
            CREATE TABLE {table} USING delta TBLPROPERTIES ({properties}) AS
            SELECT CASE faa WHEN 'BWI' THEN 'DCA' WHEN 'DCA' THEN 'BWI' ELSE faa END AS faa,
                   name, location, alt, tz, dst, tzone
            FROM {airports}
            """,
        ),
        Sql(
            "both codes are put right: two keys change places in one commit",
            """
            UPDATE {table} SET faa = CASE faa WHEN 'BWI' THEN 'DCA' ELSE 'BWI' END WHERE faa IN ('BWI', 'DCA')
            """,
        ),
        Sql(
            "Williston moves to its new airport: key ISN becomes XWA, and the nested position changes with it",
            """
            UPDATE {table}
            SET faa = 'XWA', name = 'Williston Basin Intl', location.lat = 48.2581, location.lon = -103.7486
            WHERE faa = 'ISN'
            """,
        ),
        Sql(
            "missing time zones are filled in, and with them the position of Keene, whose numbers were swapped",
            """
            MERGE INTO {table} t
            USING (SELECT * FROM VALUES ('EEN', 'America/New_York', 42.898333D, -72.270833D),
                                        ('LRO', 'America/New_York', NULL, NULL),
                                        ('YAK', 'America/Anchorage', NULL, NULL) AS v (faa, tzone, lat, lon)) s
            ON t.faa = s.faa
            WHEN MATCHED AND s.lat IS NULL THEN UPDATE SET tzone = s.tzone
            WHEN MATCHED THEN UPDATE SET tzone = s.tzone, location = named_struct('lat', s.lat, 'lon', s.lon)
            """,
        ),
        Sql("a column for the altitude in metres", "ALTER TABLE {table} ADD COLUMNS (alt_metres DOUBLE)"),
        Sql("altitudes in metres", "UPDATE {table} SET alt_metres = round(alt * 0.3048D, 1)"),
    ),
)
