"""Alerts: receivers get one message when a problem begins and one when it ends; `checks` finds the problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mirror_assets.feature import Feature

if TYPE_CHECKING:
    import click

    from mirror_assets.config.model import Config
    from mirror_assets.feature import Delivery
    from mirror_assets.settings import Section


class _Alerts(Feature):
    def settings(self) -> type[Section]:
        from mirror_assets.features.alerts.alert_settings import AlertSettings

        return AlertSettings

    def delivery(self, config: Config, now_ms: int) -> Delivery | None:
        from mirror_assets.features.alerts.alert_settings import AlertSettings

        settings = AlertSettings.of(config).alerts
        if not settings.receivers:
            return None
        from mirror_assets.features.alerts.delivery import AlertDelivery

        return AlertDelivery(settings, now_ms)

    def after_checks(self, config: Config) -> None:
        from mirror_assets.features.alerts.alert_settings import AlertSettings

        variable = AlertSettings.of(config).alerts.heartbeat_url_variable
        if variable is not None:
            from mirror_assets.features.alerts.receivers import call_heartbeat

            call_heartbeat(variable)

    def commands(self) -> Sequence[click.Command]:
        from mirror_assets.features.alerts.commands import alerts

        return (alerts,)


FEATURE = _Alerts()
