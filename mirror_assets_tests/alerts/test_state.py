"""Delivery: each receiver gets each message once, in order, however long it is down."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
from hypothesis import given

from mirror_assets.alerts.conditions import Condition, ConditionKind
from mirror_assets.alerts.incidents import GATHER_MS, SETTLE_MS, Event, advance
from mirror_assets.alerts.messages import Message
from mirror_assets.alerts.state import AlertState
from mirror_assets.config.alerts import AlertsConfig, ReceiverConfig, Severity
from mirror_assets.errors import ErrorCode, RetryError

_MINUTE = 60_000


def settings(remind_hours: float | None = None, **receivers: str) -> AlertsConfig:
    listed = {name: {"url_variable": "HOOK_URL", "severity": severity} for name, severity in receivers.items()}
    return AlertsConfig.model_validate({"receivers": listed, "remind_hours": remind_hours})


def wrong(name: str, severity: Severity = Severity.ERROR) -> Condition:
    return Condition(name, ConditionKind.TABLE, name, "fails", "it", severity, code=f"code_{name}")


class Deliveries:
    """Ticks with receivers that are up or down, and what they got."""

    def __init__(self, alerts: AlertsConfig) -> None:
        self.settings, self.state, self.now = alerts, AlertState(), 0
        self.down, self.refused = set[str](), set[str]()
        self.got: list[tuple[str, Event, str]] = []
        self.attempts = 0

    def send(self, name: str, _receiver: ReceiverConfig, message: Message) -> None:
        self.attempts += 1
        subject = message.title.removeprefix("Ended: ").removeprefix("Still: ").removeprefix("Worse: ")[:1]
        if name in self.down or subject in self.refused:
            raise RetryError("it is busy.", "wait.", code=ErrorCode.RECEIVER_REFUSED)
        self.got.append((name, message.event, subject))

    def tick(self, milliseconds: int, *conditions: Condition) -> None:
        self.now += milliseconds
        current = {one.id: one for one in conditions}
        incidents = advance(self.state.incidents, current, self.now)
        state = self.state.model_copy(update={"incidents": tuple(incidents)})
        self.state = AlertState.parse(state.delivered(self.settings, self.send, self.now).model_dump_json())

    def report(self, *conditions: Condition) -> None:
        self.tick(0, *conditions)
        self.tick(GATHER_MS, *conditions)

    def end(self) -> None:
        self.tick(1)
        self.tick(SETTLE_MS)


def test_receivers_get_what_reaches_their_minimum_severity() -> None:
    deliveries = Deliveries(settings(errors="error", all="info"))
    deliveries.report(wrong("a", Severity.WARN), wrong("b"))
    assert sorted(deliveries.got) == [
        ("all", Event.BEGUN, "a"),
        ("all", Event.BEGUN, "b"),
        ("errors", Event.BEGUN, "b"),
    ]
    deliveries.tick(1, wrong("a"), wrong("b"))
    assert sorted(deliveries.got[3:]) == [("all", Event.WORSE, "a"), ("errors", Event.BEGUN, "a")]
    deliveries.end()
    assert Counter(event for _, event, _ in deliveries.got)[Event.ENDED] == 4
    assert deliveries.state == AlertState()


def test_a_receiver_that_is_down_gets_the_beginning_and_the_end_later() -> None:
    deliveries = Deliveries(settings(hook="warn", other="warn"))
    deliveries.down = {"hook"}
    deliveries.report(wrong("a"))
    deliveries.end()
    assert [event for name, event, _ in deliveries.got if name == "other"] == [Event.BEGUN, Event.ENDED]
    assert deliveries.state.pauses["hook"].why == "it is busy."
    deliveries.report(wrong("a"))
    deliveries.down = set()
    deliveries.tick(15 * _MINUTE, wrong("a"))
    got = [event for name, event, _ in deliveries.got if name == "hook"]
    assert got == [Event.BEGUN, Event.ENDED, Event.BEGUN], "two incidents"
    assert deliveries.state.pauses == {}


def test_pauses_double_up_to_a_quarter_of_an_hour() -> None:
    deliveries, pauses = Deliveries(settings(hook="warn")), []
    deliveries.down = {"hook"}
    deliveries.report(wrong("a"))
    for _ in range(9):
        pauses.append((deliveries.state.pauses["hook"].until_ms - deliveries.now) // 1000)
        before = deliveries.attempts
        deliveries.tick(pauses[-1] * 1000 - 1, wrong("a"))
        assert deliveries.attempts == before
        deliveries.tick(1, wrong("a"))
    assert pauses == [15, 30, 60, 120, 240, 480, 900, 900, 900]


def test_a_message_that_is_never_taken_does_not_hold_up_others() -> None:
    deliveries = Deliveries(settings(hook="warn"))
    deliveries.refused = {"a"}
    deliveries.report(wrong("a"), wrong("b"))
    deliveries.tick(_MINUTE, wrong("a"), wrong("b"))
    deliveries.tick(_MINUTE, wrong("a"), wrong("b"), wrong("c"))
    deliveries.tick(_MINUTE, wrong("a"), wrong("b"), wrong("c"))
    deliveries.tick(_MINUTE, wrong("a"), wrong("b"), wrong("c"))
    assert sorted(subject for _, _, subject in deliveries.got) == ["b", "c"]


def test_a_receiver_that_takes_nothing_has_a_thousand_ended_incidents() -> None:
    deliveries = Deliveries(settings(hook="warn"))
    deliveries.down = {"hook"}
    deliveries.report(*(wrong(f"t{n}") for n in range(1100)), wrong("still"))
    deliveries.tick(1, wrong("still"))
    deliveries.tick(SETTLE_MS, wrong("still"))
    assert len(deliveries.state.incidents) == 1001
    assert deliveries.state.incidents[-1].subjects == ("still",)


def test_receivers_that_were_removed_or_added() -> None:
    deliveries = Deliveries(settings(hook="warn"))
    deliveries.report(wrong("a"))
    deliveries.settings = settings(other="warn")
    deliveries.tick(1, wrong("a"))
    assert [name for name, *_ in deliveries.got] == ["hook", "other"]
    deliveries.settings = settings()
    deliveries.end()
    assert deliveries.state == AlertState()


def test_open_incidents_are_repeated() -> None:
    deliveries = Deliveries(settings(6, hook="warn"))
    deliveries.report(wrong("a"))
    for _ in range(24 * 60 + 10):
        deliveries.tick(_MINUTE, wrong("a"))
    assert [event for _, event, _ in deliveries.got] == [Event.BEGUN, *[Event.REMINDER] * 4]


def test_a_state_of_another_version_is_left_behind() -> None:
    assert AlertState.parse('{"incidents": [{"id": "old"}]}') == AlertState() == AlertState.parse(None)


_TICKS = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.lists(st.builds(wrong, st.sampled_from("abc")), max_size=3),
        st.sets(st.sampled_from(["hook", "other"])),
    ),
    max_size=30,
)


@given(_TICKS)
def test_every_receiver_gets_each_message_once(ticks: list[tuple[int, list[Condition], set[str]]]) -> None:
    deliveries, reported = Deliveries(settings(hook="warn", other="warn")), set[str]()
    for minutes, conditions, down in ticks:
        deliveries.down = down
        deliveries.tick(minutes * _MINUTE, *conditions)
        reported |= {one.id for one in deliveries.state.incidents if one.reported_ms is not None}
    deliveries.down = set()
    for _ in range(5):
        deliveries.tick(20 * _MINUTE)
    assert deliveries.state == AlertState()
    for name in ("hook", "other"):
        events = [event for receiver, event, _ in deliveries.got if receiver == name]
        counted = Counter(events)
        assert counted[Event.BEGUN] == counted[Event.ENDED] >= len(reported)
