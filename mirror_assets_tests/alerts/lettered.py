"""Messages and receivers for tests."""

from __future__ import annotations

from mirror_assets.alerts.incidents import Told
from mirror_assets.alerts.messages import Message
from mirror_assets.config.alerts import ReceiverConfig, Severity, Topic

AT = 1_767_225_600_000  # 2026-01-01 00:00 UTC
HOUR = 3_600_000


def letter(
    told: Told = Told.BEGUN, severity: Severity = Severity.ERROR, incident: str = "i1", at: int = AT, count: int = 12
) -> Message:
    subjects = tuple(f"sales.t{n:02d}_<b>&" for n in range(count))
    return Message(
        id=f"{incident}/{told.value}-{at}",
        incident=incident,
        told=told,
        severity=severity,
        topic=Topic.TABLE,
        title=f"{count} tables: can't be mirrored (store_denied)",
        text="The store abfss://lake@acme.dfs.core.windows.net refuses the token of `app_1` & says <403>.",
        next_step="renew the token.",
        code="store_denied",
        subjects=subjects[:10],
        more=max(0, count - 10),
        began_ms=AT - 2 * HOUR,
        at_ms=at,
        dagster_link="https://dagster.example/runs/1",
        docs_link="https://docs.example/errors.md#store_denied",
    )


def hook(**settings: object) -> ReceiverConfig:
    return ReceiverConfig.model_validate({"type": "webhook", "url_variable": "HOOK_URL", **settings})
