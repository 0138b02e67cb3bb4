"""What can be wrong with a question."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, SettingError


class NotADate(SettingError):
    """Rows can't be kept by a column whose values are no dates."""

    code = ErrorCode.NOT_A_DATE

    def __init__(self, column: str, why: str) -> None:
        self.column, self.why = column, why
        super().__init__(
            f"rows can't be kept by the age of `{column}`: {why}.",
            "name a column of dates or timestamps, or a partition column like yyyy, yyyyMM, yyyy-MM or yyyy-MM-dd.",
        )
