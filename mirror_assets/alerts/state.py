"""What alerts remember between two looks: incidents, messages that wait, and how far events were read."""

from __future__ import annotations

import logging

import pydantic

from mirror_assets.alerts.conditions import Condition, Value
from mirror_assets.alerts.incidents import Incident
from mirror_assets.alerts.outbox import Waiting

_LOG = logging.getLogger(__name__)


class AlertState(Value):
    """The whole memory. `checks_read` and `runs_read` are how far the events were read, None before the first look.

    So is `rebuilt`, the epoch of each table's newest rebuild.
    """

    incidents: tuple[Incident, ...] = ()
    outbox: tuple[Waiting, ...] = ()
    checks_read: int | None = None
    runs_read: str | None = None
    rebuilt: dict[str, int] | None = None

    @property
    def conditions(self) -> dict[str, Condition]:
        """What was wrong at the newest look, by id."""
        return {member.id: member for incident in self.incidents for member in incident.members}

    @classmethod
    def parse(cls, text: str | None) -> AlertState:
        """Return the state in the text; a new one where there is none, or one that another version has written."""
        if not text:
            return cls()
        try:
            return cls.model_validate_json(text)
        except pydantic.ValidationError as error:
            _LOG.warning("alerts begin anew: their state can't be read (%d mistakes)", error.error_count())
            return cls()
