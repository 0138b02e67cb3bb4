"""Errors of alerts: a receiver that can't be reached, or refuses."""

from __future__ import annotations

from mirror_assets.errors import ErrorCode, RetryError, SettingError


class ReceiverAway(RetryError):
    """The receiver did not answer, or answered that it is busy; the message may have arrived."""

    code = ErrorCode.RECEIVER_AWAY

    def __init__(self, receiver: str, why: str, pause: float | None = None) -> None:
        """Keep the seconds after which the receiver wants to be asked again, if it has said so."""
        self.receiver, self.pause = receiver, pause
        super().__init__(
            f"alerts: the receiver {receiver} can't be reached: {why}.",
            "nothing: it is tried again; if it continues, look at the receiver and at the network.",
        )


class ReceiverRefused(SettingError):
    """The receiver refuses the message, or a variable of its settings is not set."""

    code = ErrorCode.RECEIVER_REFUSED

    def __init__(self, receiver: str, why: str) -> None:
        self.receiver = receiver
        super().__init__(
            f"alerts: the receiver {receiver} refuses: {why}.",
            f"correct alerts.receivers.{receiver} and its variables; `mirror-assets alerts test` tries it.",
        )
