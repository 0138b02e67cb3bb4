"""Points at the end of a table's path."""

from __future__ import annotations

from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.direct_lake.time_travel.errors import PointRefused
from mirror_assets.direct_lake.time_travel.shorthand import PathAt, parse_shorthand, shorthand
from mirror_assets.errors import ErrorCode
from mirror_assets.source.ranges import Point, TimePoint, VersionPoint

_SEED = round(datetime(2024, 4, 28, 9, 15, tzinfo=timezone.utc).timestamp() * 1000)
_POINTS = st.builds(VersionPoint, st.integers(0, 10**18)) | st.builds(TimePoint, st.integers(0, 4_102_444_799_999))


@pytest.mark.parametrize(
    ("text", "path", "point"),
    [
        ("Inventory@20240428091500000", "Inventory", TimePoint(_SEED)),
        ("Inventory@v2", "Inventory", VersionPoint(2)),
        ("Inventory@V2", "Inventory", VersionPoint(2)),
        ("abfss://lake@host/Tables/t@20240428091500007", "abfss://lake@host/Tables/t", TimePoint(_SEED + 7)),
        ("/lake/t@v1@v12", "/lake/t@v1", VersionPoint(12)),
        ("/lake/t@v20240428091500000", "/lake/t", VersionPoint(20240428091500000)),
        ("/lake/t", "/lake/t", None),
        ("/lake/t@2", "/lake/t@2", None),
        ("/lake/t@2024042809150000", "/lake/t@2024042809150000", None),
        ("/lake/t@v", "/lake/t@v", None),
        ("/lake/t@v2/part=1", "/lake/t@v2/part=1", None),
        ("abfss://lake@v2host/t", "abfss://lake@v2host/t", None),
    ],
)
def test_a_path_ends_with_a_version_a_time_or_nothing(text: str, path: str, point: Point | None) -> None:
    assert parse_shorthand(text) == PathAt(path, point)


def test_a_time_is_read_in_the_zone_that_is_named() -> None:
    there = parse_shorthand("t@20240428111500000", ZoneInfo("Europe/Berlin"))
    assert there.point == TimePoint(_SEED)
    assert shorthand("t", TimePoint(_SEED), ZoneInfo("Europe/Berlin")) == "t@20240428111500000"


@pytest.mark.parametrize("digits", ["20240431000000000", "20241301000000000", "20240428250000000", "00000428091500000"])
def test_digits_that_are_no_time_are_refused(digits: str) -> None:
    with pytest.raises(PointRefused) as refused:
        parse_shorthand(f"t@{digits}")
    assert refused.value.code is ErrorCode.POINT_REFUSED
    assert f"@{digits}" in str(refused.value)


@given(st.text(), _POINTS)
def test_what_is_written_is_read_back(path: str, point: Point) -> None:
    assert parse_shorthand(shorthand(path, point)) == PathAt(path, point)
