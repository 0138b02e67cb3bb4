"""What can be wrong with what guardrails are asked about."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, SettingError


class SkuUnknown(SettingError):
    """There is no capacity of that name."""

    code = ErrorCode.SKU_UNKNOWN

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name, self.known = name, known
        super().__init__(f"{name} is no capacity that has limits for Direct Lake.", f"name one of {', '.join(known)}.")
