"""Weather: partitioned by airport, corrected by MERGE, and one day replaced.

Key `origin`, `time_hour` (UTC): 26,115 rows, as many keys, no gaps. The local hour won't do: on 3 November 2013, when
clocks went back, the hour from 1 to 2 was measured twice at each of the three airports.
"""

from __future__ import annotations

from mirror_assets.demo.steps import History, Sql

WEATHER = History(
    "weather",
    (
        Sql(
            "first half of the year; until the 10th of each month Newark reports in Celsius",
            """
            CREATE TABLE {table} USING delta PARTITIONED BY (origin) TBLPROPERTIES ({properties}) AS
            SELECT origin, year, month, day, hour,
                   CASE WHEN origin = 'EWR' AND day <= 10 THEN (temp - 32) * 5 / 9 ELSE temp END AS temp,
                   dewp, humid, wind_dir, wind_speed, wind_gust, precip, pressure, visib, time_hour
            FROM {weather} WHERE month < {second_half}
            """,
        ),
        Sql("second half of the year", "INSERT INTO {table} SELECT * FROM {weather} WHERE month >= {second_half}"),
        Sql(
            "Newark's temperatures are put right",
            """
            MERGE INTO {table} t USING {weather} s
            ON t.origin = s.origin AND t.time_hour = s.time_hour
            WHEN MATCHED AND t.temp IS DISTINCT FROM s.temp THEN UPDATE SET *
            """,
        ),
        Sql(
            "calm air has no direction",
            "UPDATE {table} SET wind_dir = NULL WHERE wind_speed = 0 AND wind_dir IS NOT NULL",
        ),
        Sql(
            "one day at JFK is delivered again and replaces what was there",
            """
            INSERT INTO {table} REPLACE WHERE origin = 'JFK' AND month = 1 AND day = 20
            SELECT * FROM {weather} WHERE origin = 'JFK' AND month = 1 AND day = 20
            """,
        ),
        Sql("small files are put together, by time", "OPTIMIZE {table} ZORDER BY (time_hour)"),
    ),
)
