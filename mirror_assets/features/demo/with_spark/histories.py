"""The histories of the demo's five tables: each commit of each table, and why its key is the key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.spark_names import spark_path

# A mirror that was away for weeks must still find the feed: Delta refuses to read it once it is older than this.
_PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.deletedFileRetentionDuration": "interval 60 days",
    "delta.logRetentionDuration": "interval 60 days",
}


@dataclass(frozen=True)
class DemoLake:
    """The folder of the lake, and the folder of the delivered Parquet files that it is built from."""

    lake: Path
    delivered: Path
    months: range

    def versions(self, table: str) -> int:
        """How many versions the table has; none before its first load."""
        folder = str(self.lake / table)
        return DeltaTable(folder).version() + 1 if DeltaTable.is_deltatable(folder) else 0


@dataclass(frozen=True)
class Step:
    """One commit: what it means in the airline's world, and the statement with which Spark makes it.

    Names in the statement are replaced: `{table}` is the Delta table, `{flights}` and the like what was delivered,
    `{second_half}` the first month that the first load leaves out, `{late_day}` a day that arrives late, `{properties}`
    every table's properties. Without a statement, delta-rs writes the delivered rows as a new table: a source's writers
    need not all be Spark.
    """

    what: str
    statement: str | None = None

    def commit(self, spark: SparkSession, place: DemoLake, table: str) -> None:
        """Make the commit."""
        if self.statement is None:
            rows = pq.read_table(place.delivered / f"{table}.parquet")
            write_deltalake(place.lake / table, rows, configuration=dict(_PROPERTIES))
            return
        names = {file.stem: _quoted("parquet", file) for file in place.delivered.glob("*.parquet")}
        statement = self.statement.format(
            table=_quoted("delta", place.lake / table),
            second_half=place.months[len(place.months) // 2],
            late_day=f"DATE'{date(2013, place.months[0], 15)}'",
            properties=", ".join(f"'{name}' = '{value}'" for name, value in _PROPERTIES.items()),
            **names,
        )
        spark.sql(statement)


def _quoted(source: str, path: Path) -> str:
    """A path as Spark SQL reads it: the name of a data source and the path between backticks."""
    escaped = spark_path(str(path)).replace("`", "``")
    return f"{source}.`{escaped}`"


@dataclass(frozen=True)
class History:
    """A table and its commits: step n makes version n."""

    table: str
    steps: tuple[Step, ...]


# Airlines: a small table that is replaced as a whole now and then.
# Key `carrier`: 16 rows, 16 codes, no gaps. Version 3 overwrites the table, so its feed has a delete and an insert of
# the same key for every carrier: the mirror must make one update of each pair, and two real deletes.
AIRLINES = History(
    "airlines",
    (
        Step("first load, written by delta-rs"),
        Step(
            "AirTran is registered under its short name",
            "UPDATE {table} SET name = 'AirTran Airways' WHERE carrier = 'FL'",
        ),
        Step(
            "two carriers are entered by hand",
            """
            MERGE INTO {table} t
            USING (SELECT * FROM VALUES ('NK', 'Spirit Air Lines'), ('G4', 'Allegiant Air') AS v (carrier, name)) s
            ON t.carrier = s.carrier
            WHEN NOT MATCHED THEN INSERT *
            """,
        ),
        Step(
            "the register is delivered again and replaces everything entered by hand",
            "INSERT OVERWRITE {table} SELECT * FROM {airlines}",
        ),
    ),
)


# Airports: a nested column, a key that changes, and two keys that change places in one UPDATE.
# Key `faa`: 1,458 rows, 1,458 codes, no gaps (`name` isn't unique: 14 names are used more than once). `location` is a
# struct, which the mirror shows as JSON text.
AIRPORTS = History(
    "airports",
    (
        Step(
            "first load, with the codes of Baltimore and Washington mixed up",
            """
            CREATE TABLE {table} USING delta TBLPROPERTIES ({properties}) AS
            SELECT CASE faa WHEN 'BWI' THEN 'DCA' WHEN 'DCA' THEN 'BWI' ELSE faa END AS faa,
                   name, location, alt, tz, dst, tzone
            FROM {airports}
            """,
        ),
        Step(
            "both codes are put right: two keys change places in one commit",
            """
            UPDATE {table} SET faa = CASE faa WHEN 'BWI' THEN 'DCA' ELSE 'BWI' END WHERE faa IN ('BWI', 'DCA')
            """,
        ),
        Step(
            "Williston moves to its new airport: key ISN becomes XWA, and the nested position changes with it",
            """
            UPDATE {table}
            SET faa = 'XWA', name = 'Williston Basin Intl', location.lat = 48.2581, location.lon = -103.7486
            WHERE faa = 'ISN'
            """,
        ),
        Step(
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
        Step("a column for the altitude in metres", "ALTER TABLE {table} ADD COLUMNS (alt_metres DOUBLE)"),
        Step("altitudes in metres", "UPDATE {table} SET alt_metres = round(alt * 0.3048D, 1)"),
    ),
)


# Planes: deletion vectors, an added column of dates, and one key deleted and inserted in one MERGE.
# Key `tailnum`: 3,322 rows, 3,322 registrations, no gaps.
PLANES = History(
    "planes",
    (
        Step(
            "first load, without the registrations from N900 on",
            """
            CREATE TABLE {table} USING delta TBLPROPERTIES ({properties}, 'delta.enableDeletionVectors' = 'true') AS
            SELECT * FROM {planes} WHERE tailnum NOT LIKE 'N9%'
            """,
        ),
        Step(
            "registrations from N900 on arrive late",
            "INSERT INTO {table} SELECT * FROM {planes} WHERE tailnum LIKE 'N9%'",
        ),
        Step(
            "a missing year of manufacture is taken from the oldest plane of the same model",
            """
            MERGE INTO {table} t
            USING (SELECT model, min(year) AS year FROM {planes} GROUP BY model HAVING min(year) IS NOT NULL) s
            ON t.model = s.model AND t.year IS NULL
            WHEN MATCHED THEN UPDATE SET year = s.year
            """,
        ),
        Step(
            "a plane is registered again: key N10156 becomes N10157",
            "UPDATE {table} SET tailnum = 'N10157' WHERE tailnum = 'N10156'",
        ),
        Step(
            "planes with piston engines leave the fleet",
            "DELETE FROM {table} WHERE engine IN ('Reciprocating', '4 Cycle')",
        ),
        Step("a column for the first flight of the year", "ALTER TABLE {table} ADD COLUMNS (first_flight DATE)"),
        Step(
            "first flights are taken from the flights",
            """
            MERGE INTO {table} t
            USING (SELECT tailnum, min(date) AS first_flight
                   FROM {flights} WHERE dep_time IS NOT NULL GROUP BY tailnum) s
            ON t.tailnum = s.tailnum
            WHEN MATCHED THEN UPDATE SET first_flight = s.first_flight
            """,
        ),
        Step(
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
        Step("small files are put together", "OPTIMIZE {table}"),
    ),
)


# Weather: partitioned by airport, corrected by MERGE, and one day replaced.
# Key `origin`, `time_hour` (UTC): 26,115 rows, as many keys, no gaps. The local hour won't do: on 3 November 2013, when
# clocks went back, the hour from 1 to 2 was measured twice at each of the three airports.
WEATHER = History(
    "weather",
    (
        Step(
            "first half of the year; until the 10th of each month Newark reports in Celsius",
            """
            CREATE TABLE {table} USING delta PARTITIONED BY (origin) TBLPROPERTIES ({properties}) AS
            SELECT origin, year, month, day, hour,
                   CASE WHEN origin = 'EWR' AND day <= 10 THEN (temp - 32) * 5 / 9 ELSE temp END AS temp,
                   dewp, humid, wind_dir, wind_speed, wind_gust, precip, pressure, visib, time_hour
            FROM {weather} WHERE month < {second_half}
            """,
        ),
        Step("second half of the year", "INSERT INTO {table} SELECT * FROM {weather} WHERE month >= {second_half}"),
        Step(
            "Newark's temperatures are put right",
            """
            MERGE INTO {table} t USING {weather} s
            ON t.origin = s.origin AND t.time_hour = s.time_hour
            WHEN MATCHED AND t.temp IS DISTINCT FROM s.temp THEN UPDATE SET *
            """,
        ),
        Step(
            "calm air has no direction",
            "UPDATE {table} SET wind_dir = NULL WHERE wind_speed = 0 AND wind_dir IS NOT NULL",
        ),
        Step(
            "one day at JFK is delivered again and replaces what was there",
            """
            INSERT INTO {table} REPLACE WHERE origin = 'JFK' AND month = 1 AND day = 20
            SELECT * FROM {weather} WHERE origin = 'JFK' AND month = 1 AND day = 20
            """,
        ),
        Step("small files are put together, by time", "OPTIMIZE {table} ZORDER BY (time_hour)"),
    ),
)


# Flights: 336,776 rows in partitions by month, with late rows, corrections and cancellations.
# Key `date`, `carrier`, `flight`, `origin`: as many keys as rows, no gaps, and none of the four can go: without
# `origin` 24 keys are doubled (one flight number, two legs on one day). `tailnum` has gaps, and `time_hour` is no
# steadier than the schedule. Four columns, because Microsoft advises fewer than five: hence `date` for its parts.
FLIGHTS = History(
    "flights",
    (
        Step(
            "first half of the year: one day is missing, so is Hawaiian, and US Airways' first reports are provisional",
            """
            CREATE TABLE {table} USING delta PARTITIONED BY (month) TBLPROPERTIES ({properties}) AS
            SELECT date, year, month, day, dep_time, sched_dep_time, dep_delay, arr_time, sched_arr_time,
                   CASE WHEN carrier = 'US' AND day <= 7 THEN dep_delay ELSE arr_delay END AS arr_delay,
                   carrier, flight, tailnum, origin, dest, air_time, distance, hour, minute, time_hour
            FROM {flights} WHERE month < {second_half} AND date <> {late_day} AND carrier <> 'HA'
            """,
        ),
        Step("second half of the year", "INSERT INTO {table} SELECT * FROM {flights} WHERE month >= {second_half}"),
        Step(
            "the missing day arrives late",
            "INSERT INTO {table} SELECT * FROM {flights} WHERE date = {late_day} AND carrier <> 'HA'",
        ),
        Step("files of one month are put together", "OPTIMIZE {table}"),
        Step(
            "final reports: provisional arrival delays are corrected, Hawaiian's flights added",
            """
            MERGE INTO {table} t
            USING (SELECT * FROM {flights} WHERE month < {second_half} AND carrier IN ('US', 'HA')) s
            ON t.date = s.date AND t.carrier = s.carrier AND t.flight = s.flight AND t.origin = s.origin
            WHEN MATCHED AND t.arr_delay IS DISTINCT FROM s.arr_delay THEN UPDATE SET arr_delay = s.arr_delay
            WHEN NOT MATCHED THEN INSERT *
            """,
        ),
        Step("cancelled flights are deleted", "DELETE FROM {table} WHERE dep_time IS NULL"),
        Step("a column for remarks", "ALTER TABLE {table} ADD COLUMNS (remark STRING)"),
        Step(
            "flights that never reached their destination are remarked on",
            "UPDATE {table} SET remark = 'diverted' WHERE arr_delay IS NULL",
        ),
    ),
)

HISTORIES = (AIRLINES, AIRPORTS, PLANES, WEATHER, FLIGHTS)
