"""The outbox: no message is lost, and none is sent twice without a failure."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
from hypothesis import given

from mirror_assets.alerts.incidents import Event
from mirror_assets.alerts.messages import Message
from mirror_assets.alerts.state import AlertState, Waiting, deliver
from mirror_assets.config.alerts import ReceiverConfig, Severity
from mirror_assets.errors import ErrorCode, RetryError

_AT, _HOUR = 1_767_225_600_000, 3_600_000  # 2026-01-01


def message(
    event: Event = Event.BEGUN, severity: Severity = Severity.ERROR, incident: str = "i1", at: int = _AT
) -> Message:
    return Message(incident=incident, event=event, severity=severity, title="t", body="b", at_ms=at)


def hook(severity: str = "warn") -> ReceiverConfig:
    return ReceiverConfig.model_validate({"url_variable": "HOOK_URL", "severity": severity})


_HOOK = {"hook": hook()}


def test_receivers_get_what_reaches_their_minimum_severity() -> None:
    receivers = {"errors": hook("error"), "all": hook("info")}
    state = AlertState().queued([message(severity=Severity.WARN), message(incident="i2")], receivers)
    found = sorted((entry.receiver, entry.message.incident) for entry in state.outbox)
    assert found == [("all", "i1"), ("all", "i2"), ("errors", "i2")]


def test_messages_of_one_incident_keep_their_order_and_others_go_on() -> None:
    state = AlertState().queued([message(), message(Event.ENDED), message(incident="i2")], _HOOK)
    failed = state.settled({("hook", message()): "HTTP 500"}, _AT)
    assert [entry.message.incident for entry in failed.ready("hook", _AT)] == ["i2"]
    assert [entry.message.event for entry in failed.ready("hook", _AT + 15_000)] == [
        Event.BEGUN,
        Event.ENDED,
        Event.BEGUN,
    ]
    assert failed.outbox[0].why == "HTTP 500"


def test_pauses_double_up_to_a_quarter_of_an_hour() -> None:
    state, now, pauses = AlertState().queued([message()], _HOOK), _AT, []
    for _ in range(9):
        state = state.settled({("hook", message()): "no"}, now)
        pauses.append((state.outbox[0].next_ms - now) // 1000)
        now = state.outbox[0].next_ms
    assert pauses == [15, 30, 60, 120, 240, 480, 900, 900, 900]


def test_a_reminder_is_left_out_while_an_earlier_message_waits() -> None:
    state = AlertState().queued([message()], _HOOK)
    assert len(state.queued([message(Event.REMINDER, at=_AT + _HOUR)], _HOOK).outbox) == 1
    assert len(AlertState().queued([message(Event.REMINDER, at=_AT + _HOUR)], _HOOK).outbox) == 1


def test_a_receiver_that_was_removed_has_no_messages() -> None:
    assert AlertState().queued([message()], _HOOK).queued([], {"other": hook()}).outbox == ()


def test_a_receiver_that_takes_nothing_has_a_thousand_messages() -> None:
    state = AlertState().queued([message(incident=f"i{n}") for n in range(1500)], _HOOK)
    assert [len(state.outbox), state.outbox[-1].message.incident] == [1000, "i1499"]


def test_delivery_stops_at_the_first_failure() -> None:
    def send(_name: str, _config: ReceiverConfig, one: Message) -> None:
        if one.incident == "i2":
            raise RetryError("it is busy.", "wait.", code=ErrorCode.RECEIVER_AWAY)

    entries = [Waiting(receiver="hook", message=message(incident=name)) for name in ("i1", "i2", "i3")]
    outcomes = deliver(entries, hook(), send)
    assert {key[1].incident: why for key, why in outcomes.items()} == {"i1": None, "i2": "it is busy."}


def test_a_state_of_another_version_is_left_behind() -> None:
    assert AlertState.parse('{"incidents": [{"id": "old"}]}') == AlertState() == AlertState.parse(None)
    state = AlertState().queued([message()], _HOOK)
    assert AlertState.parse(state.model_dump_json()) == state


_MESSAGES = st.lists(
    st.builds(message, st.sampled_from([Event.BEGUN, Event.ENDED]), st.just(Severity.ERROR), st.sampled_from("ab")),
    max_size=6,
    unique_by=lambda one: (one.incident, one.event),
)


@given(st.lists(st.tuples(_MESSAGES, st.integers(0, 4 * 60), st.lists(st.booleans(), max_size=8)), max_size=20))
def test_every_message_is_delivered_once(story: list[tuple[list[Message], int, list[bool]]]) -> None:
    state, now, sent, made = AlertState(), _AT, list[Message](), list[Message]()
    for number, (messages, minutes, answers) in enumerate(story):
        fresh = [one.model_copy(update={"at_ms": _AT + number}) for one in messages]
        made += fresh
        state, now = state.queued(fresh, _HOOK), now + minutes * 60_000
        tried = [entry.message for entry in state.ready("hook", now)]
        outcomes = {("hook", one): None if taken else "no" for one, taken in zip(tried, answers, strict=False)}
        sent += [one for (_, one), why in outcomes.items() if why is None]
        state = state.settled(outcomes, now)
    while state.outbox:
        now += _HOUR
        tried = [entry.message for entry in state.ready("hook", now)]
        sent += tried
        state = state.settled({("hook", one): None for one in tried}, now)
    assert Counter(sent) == Counter(made)
