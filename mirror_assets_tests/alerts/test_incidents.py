"""The incidents: each is reported once when it begins and once when it ends, whatever happens between."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mirror_assets.alerts.conditions import Condition, ConditionKind
from mirror_assets.alerts.incidents import GATHER_MS, SETTLE_MS, Event, Incident, Sent, advance
from mirror_assets.config.alerts import Severity

_REMIND_MS, _CONFIRM_MS = 1_000_000, 400_000
_QUIET_TICKS = 3


def wrong(
    name: str,
    cause: str = "c",
    severity: Severity = Severity.ERROR,
    *,
    is_shared: bool = False,
    since: int | None = None,
    is_passing: bool = False,
) -> Condition:
    return Condition(
        name,
        ConditionKind.TABLE if since is None else ConditionKind.CHECK,
        name,
        "fails",
        "it",
        severity,
        code=f"store_{cause}" if is_shared else cause,
        since_ms=(since or 0) * 1000,
        is_passing=is_passing,
    )


class Story:
    """Ticks one after the other, and all messages so far with their times, in seconds."""

    def __init__(self, remind_ms: int | None = _REMIND_MS) -> None:
        self.remind_ms, self.now, self.incidents = remind_ms, 0, list[Incident]()
        self.sent: list[tuple[int, Event, Incident]] = []

    def tick(self, seconds: int, *conditions: Condition) -> list[Event]:
        self.now += seconds
        current = {one.id: one for one in conditions}
        now_ms, events = self.now * 1000, list[Event]()
        self.incidents = advance(self.incidents, current, now_ms, _CONFIRM_MS)
        for number, incident in enumerate(self.incidents):
            event = incident.due("hook", Severity.INFO, now_ms, self.remind_ms)
            if event is not None:
                events.append(event)
                self.sent.append((self.now, event, incident))
                sent = {"hook": Sent(event=event, severity=incident.example.severity, at_ms=now_ms)}
                self.incidents[number] = incident.model_copy(update={"sent": sent})
        self.incidents = [one for one in self.incidents if not one.has_ended(now_ms)]
        return events


def begun(*conditions: Condition, remind_ms: int | None = _REMIND_MS) -> Story:
    """A story in which these conditions have begun together and were reported."""
    story = Story(remind_ms)
    story.tick(0, *conditions)
    assert story.tick(30, *conditions) == [Event.BEGUN]
    return story


def test_what_begins_together_is_one_message() -> None:
    story = Story()
    assert story.tick(0, wrong("a")) == []
    assert story.tick(29, wrong("a"), wrong("b")) == []
    assert story.tick(1, wrong("a"), wrong("b"), wrong("c")) == [Event.BEGUN]
    assert story.sent[0][2].subjects == ("a", "b", "c")


def test_what_comes_later_is_another_message_unless_its_fault_is_a_shared_one() -> None:
    story = begun(wrong("a"))
    assert story.tick(1, wrong("a"), wrong("b")) == []
    assert story.tick(30, wrong("a"), wrong("b")) == [Event.BEGUN]
    shared = begun(wrong("a", is_shared=True))
    both = (wrong("a", is_shared=True), wrong("b", is_shared=True))
    assert [shared.tick(seconds, *both) for seconds in (1, 30, 300)] == [[], [], []]


def test_it_ends_when_the_last_has_been_gone_for_long_enough() -> None:
    story = begun(wrong("a"), wrong("b"))
    assert story.tick(1, wrong("b")) == []
    assert [story.tick(seconds) for seconds in (1, 59, 1)] == [[], [], [Event.ENDED]]
    assert [one for one in story.incidents if not one.has_ended(story.now * 1000)] == []


def test_what_comes_back_at_once_has_not_ended() -> None:
    story = begun(wrong("a"), remind_ms=None)
    for _ in range(20):
        assert story.tick(40) == []
        assert story.tick(10, wrong("a")) == []


def test_what_is_gone_before_its_first_message_is_not_reported() -> None:
    story = Story()
    story.tick(0, wrong("a"))
    assert [story.tick(t) for t in (10, 20, 50)] == [[], [], []]
    assert [one for one in story.incidents if not one.has_ended(story.now * 1000)] == []


def test_what_comes_and_goes_before_its_first_message_is_reported() -> None:
    story = Story()
    for _ in range(2):
        assert story.tick(14, wrong("a")) == []
        assert story.tick(5) == []
    assert story.tick(20, wrong("a")) == [Event.BEGUN]


def test_a_result_that_may_be_outdated_waits_for_the_next_checks() -> None:
    story = Story()
    story.tick(1000, wrong("a", since=100))
    assert [story.tick(seconds, wrong("a", since=100)) for seconds in (30, 300, 70)] == [[], [], [Event.BEGUN]]
    story.tick(0, wrong("b", "other", since=story.now - 10))
    assert story.tick(30, wrong("b", "other", since=story.now - 10)) == [Event.BEGUN]


def test_another_message_is_no_other_incident_but_another_code_is() -> None:
    one = Condition("a", ConditionKind.TABLE, "t", "fails", "it is gone", code="log_gap")
    story = begun(one)
    for changed in (replace(one, text="other words"), replace(one, text="others", code=None)):
        assert [story.tick(61, changed) for _ in range(2)] == [[], []]
    other = replace(one, code="feed_disabled")
    assert [story.tick(60, other) for _ in range(2)] == [[], [Event.ENDED, Event.BEGUN]]


def test_a_first_failure_that_may_pass_starts_and_ends_nothing() -> None:
    story = Story()
    passing = wrong("a", "other", is_passing=True)
    assert [story.tick(31, passing) for _ in range(3)] == [[], [], []]
    story.tick(0, wrong("a"))
    assert story.tick(30, wrong("a")) == [Event.BEGUN]
    assert [story.tick(61, passing) for _ in range(3)] == [[], [], []]


def test_what_gets_worse_is_told_once() -> None:
    story = begun(wrong("a", severity=Severity.WARN))
    assert story.tick(1, wrong("a")) == [Event.WORSE]
    assert story.tick(1, wrong("a", severity=Severity.WARN)) == []
    assert story.tick(1, wrong("a")) == []


@pytest.mark.parametrize(("remind_ms", "reminders"), [(_REMIND_MS, [1030, 2030, 3030, 4030]), (None, [])])
def test_reminders_come_at_their_interval_if_there_is_one(remind_ms: int | None, reminders: list[int]) -> None:
    story = begun(wrong("a"), remind_ms=remind_ms)
    for _ in range(400):
        story.tick(10, wrong("a"))
    assert [(at, event) for at, event, _ in story.sent[1:]] == [(at, Event.REMINDER) for at in reminders]


_LAG = Condition("lag", ConditionKind.CHECK, "t", "check lag fails", "late", check="lag", since_ms=1)
_TABLE = Condition("t", ConditionKind.TABLE, "t", "can't be mirrored", "a gap", code="log_gap")


def test_a_consequence_is_reported_when_its_cause_has_ended_and_it_still_holds() -> None:
    story = begun(_TABLE, _LAG)
    assert [story.tick(seconds, _LAG) for seconds in (15, 15, 45)] == [[], [], [Event.ENDED]]
    assert [story.tick(seconds, _LAG) for seconds in (15, 200, 200)] == [[], [], [Event.BEGUN]]
    assert story.sent[-1][2].members == (_LAG,)


def test_a_consequence_that_was_reported_first_stays_until_it_ends() -> None:
    story = begun(_LAG)
    story.tick(10, _LAG, _TABLE)
    assert story.tick(30, _LAG, _TABLE) == [Event.BEGUN]
    assert [story.tick(61, _LAG, _TABLE) for _ in range(3)] == [[], [], []]


def test_a_failure_that_is_not_reported_hides_nothing() -> None:
    story = begun(replace(_TABLE, is_passing=True), _LAG)
    assert story.sent[0][2].members == (_LAG,)


_CONDITIONS = st.builds(
    wrong,
    st.sampled_from("abcdef"),
    st.sampled_from(["c1", "c2"]),
    st.sampled_from(list(Severity)),
    is_shared=st.booleans(),
)
_STORIES = st.lists(st.tuples(st.integers(0, 400), st.lists(_CONDITIONS, max_size=6)), max_size=40)


@given(_STORIES)
def test_every_incident_is_reported_once_and_ended_once(ticks: list[tuple[int, list[Condition]]]) -> None:
    story = Story()
    for seconds, conditions in ticks:
        story.tick(seconds, *conditions)
        members = [one.id for incident in story.incidents if incident.gone_ms is None for one in incident.members]
        assert sorted(members) == sorted({one.id for one in conditions}), "each condition is in one incident"
    for _ in range(_QUIET_TICKS):
        story.tick(100)
    assert story.incidents == [], "what is gone has ended"
    order: dict[str, list[Event]] = {}
    for _, event, incident in story.sent:
        order.setdefault(incident.id, []).append(event)
    for events in order.values():
        counted = Counter(events)
        assert (counted[Event.BEGUN], counted[Event.ENDED]) == (1, 1)
        assert (events[0], events[-1]) == (Event.BEGUN, Event.ENDED)
        assert counted[Event.WORSE] <= 2


@given(_STORIES)
def test_times_of_messages(ticks: list[tuple[int, list[Condition]]]) -> None:
    story = Story()
    for seconds, conditions in ticks:
        story.tick(seconds, *conditions)
    last: dict[str, int] = {}
    for at, event, incident in story.sent:
        if event is Event.BEGUN:
            assert at * 1000 - incident.began_ms >= GATHER_MS
        if event is Event.REMINDER:
            assert (at - last[incident.id]) * 1000 >= _REMIND_MS
        if event is Event.ENDED:
            assert incident.gone_ms is not None
            assert at * 1000 - incident.gone_ms >= SETTLE_MS
        last[incident.id] = at
