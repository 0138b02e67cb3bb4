"""What can be wrong with what a plan is asked for."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, SettingError


class FabricNameRefused(SettingError):
    """Fabric's table maintenance takes no table or schema of that name."""

    code = ErrorCode.NAME_REFUSED

    def __init__(self, name: str, longest: int) -> None:
        self.name, self.longest = name, longest
        super().__init__(
            f"{name!r} is no name that Fabric's table maintenance takes.",
            f"name the table as its lakehouse does: up to {longest} letters, digits and underscores, not only digits; "
            "the schema is named apart.",
        )
