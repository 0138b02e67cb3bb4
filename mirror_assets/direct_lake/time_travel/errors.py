"""What can be wrong with a point in a table's history."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, SettingError


class PointRefused(SettingError):
    """The text names no point in a history."""

    code = ErrorCode.POINT_REFUSED

    def __init__(self, point: str, why: str) -> None:
        self.point, self.why = point, why
        super().__init__(
            f"{point} is no point in a table's history: {why}.",
            "write a version like @v123, or a time like @20260131183000250 (yyyyMMddHHmmssSSS).",
        )


class PointBeyond(SettingError):
    """The table can't be read as it was at that point: its log begins later, or ends before."""

    code = ErrorCode.POINT_BEYOND

    def __init__(self, uri: str, point: str, why: str, nearest: str) -> None:
        self.uri, self.point, self.why, self.nearest = uri, point, why, nearest
        super().__init__(f"{uri} can't be read as of {point}: {why}.", f"the nearest that can be read is {nearest}.")
