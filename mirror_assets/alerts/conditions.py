"""Conditions: what is wrong now, each with the cause that it shares with others."""

from __future__ import annotations

from typing import Annotated

import pydantic
from pydantic import BeforeValidator, Field

from mirror_assets.alerts.texts import cleaned, shortened, without_credentials
from mirror_assets.config.alerts import Severity, Topic
from mirror_assets.redaction import redacted
from mirror_assets.row_values import without_values


def _shown(value: object) -> object:
    if not isinstance(value, str):
        return value
    return shortened(cleaned(without_credentials(without_values(redacted(value)))))


Shown = Annotated[str, BeforeValidator(_shown)]


class Value(pydantic.BaseModel):
    """A value of alerts that is kept in Dagster's storage as JSON."""

    model_config = pydantic.ConfigDict(frozen=True, extra="ignore")


class Condition(Value):
    """One thing that is wrong with one subject.

    `id` names both and stays the same while it lasts. `cause` is equal for conditions that one fault explains.
    `subject` is a table, or the name of a job or sensor; `what` says in a few words what is wrong with it. `check` is
    the name of a check that fails or is overdue. `page` is the path of a page in Dagster's UI. `joins` says whether it
    belongs to an incident of its cause that was told before: the fault lies outside of the table, such as in a store.
    Else it is news.

    Texts are cleaned when they come in, because they are kept, and sent to people outside: no secret, no value of a
    row, no control character.
    """

    id: str
    topic: Topic
    severity: Severity
    cause: Shown
    subject: str
    what: Shown
    text: Shown
    next_step: Shown = ""
    code: str | None = None
    check: str | None = None
    page: str | None = None
    since_ms: int = Field(default=0, ge=0)
    joins: bool = False
