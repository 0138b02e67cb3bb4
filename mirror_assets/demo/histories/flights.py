"""Flights: 336,776 rows in partitions by month, with late rows, corrections and cancellations.

Key `date`, `carrier`, `flight`, `origin`: as many keys as rows, no gaps, and none of the four can go (without `origin`
24 keys are doubled: one flight number, two legs on one day). `tailnum` has gaps, and `time_hour` is no steadier than
the schedule. Four columns, because Microsoft advises fewer than five: hence `date` in place of year, month and day.
"""

from __future__ import annotations

from mirror_assets.demo.steps import History, Sql

FLIGHTS = History(
    "flights",
    (
        Sql(
            "first half of the year: one day is missing, so is Hawaiian, and US Airways' first reports are provisional",
            """
            CREATE TABLE {table} USING delta PARTITIONED BY (month) TBLPROPERTIES ({properties}) AS
            SELECT date, year, month, day, dep_time, sched_dep_time, dep_delay, arr_time, sched_arr_time,
                   CASE WHEN carrier = 'US' AND day <= 7 THEN dep_delay ELSE arr_delay END AS arr_delay,
                   carrier, flight, tailnum, origin, dest, air_time, distance, hour, minute, time_hour
            FROM {flights} WHERE month < {second_half} AND date <> {late_day} AND carrier <> 'HA'
            """,
        ),
        Sql("second half of the year", "INSERT INTO {table} SELECT * FROM {flights} WHERE month >= {second_half}"),
        Sql(
            "the missing day arrives late",
            "INSERT INTO {table} SELECT * FROM {flights} WHERE date = {late_day} AND carrier <> 'HA'",
        ),
        Sql("files of one month are put together", "OPTIMIZE {table}"),
        Sql(
            "final reports: provisional arrival delays are corrected, Hawaiian's flights added",
            """
            MERGE INTO {table} t
            USING (SELECT * FROM {flights} WHERE month < {second_half} AND carrier IN ('US', 'HA')) s
            ON t.date = s.date AND t.carrier = s.carrier AND t.flight = s.flight AND t.origin = s.origin
            WHEN MATCHED AND t.arr_delay IS DISTINCT FROM s.arr_delay THEN UPDATE SET arr_delay = s.arr_delay
            WHEN NOT MATCHED THEN INSERT *
            """,
        ),
        Sql("cancelled flights are deleted", "DELETE FROM {table} WHERE dep_time IS NULL"),
        Sql("a column for remarks", "ALTER TABLE {table} ADD COLUMNS (remark STRING)"),
        Sql(
            "flights that never reached their destination are remarked on",
            "UPDATE {table} SET remark = 'diverted' WHERE arr_delay IS NULL",
        ),
    ),
)
