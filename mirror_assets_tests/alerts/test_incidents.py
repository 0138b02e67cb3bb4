"""The incidents: each is told once when it begins and once when it ends, whatever happens between."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
from hypothesis import given

from mirror_assets.alerts.conditions import Condition
from mirror_assets.alerts.incidents import Due, Incident, Pace, Told, advance
from mirror_assets.config.alerts import Severity, Topic

_PACE = Pace(gather=30, settle=60, remind=1000)
_QUIET_TURNS = 3


def wrong(name: str, cause: str = "c", severity: Severity = Severity.ERROR, *, joins: bool = False) -> Condition:
    return Condition(
        id=name, topic=Topic.CHECK, severity=severity, cause=cause, subject=name, what="fails", text="it", joins=joins
    )


class Story:
    """Turns one after the other, and all messages so far with their times."""

    def __init__(self, pace: Pace = _PACE) -> None:
        self.pace, self.now, self.incidents = pace, 0, tuple[Incident, ...]()
        self.told: list[tuple[int, Due]] = []

    def turn(self, seconds: int, *conditions: Condition) -> list[Told]:
        self.now += seconds
        turn = advance(self.incidents, {one.id: one for one in conditions}, self.now, self.pace)
        self.incidents = turn.incidents
        self.told += [(self.now, due) for due in turn.due]
        return [due.told for due in turn.due]


def test_what_begins_together_is_one_message() -> None:
    story = Story()
    assert story.turn(0, wrong("a")) == []
    assert story.turn(29, wrong("a"), wrong("b")) == []
    assert story.turn(1, wrong("a"), wrong("b"), wrong("c")) == [Told.BEGUN]
    assert story.told[0][1].incident.subjects == ("a", "b", "c")


def test_what_comes_later_is_news_unless_its_fault_is_a_shared_one() -> None:
    story = Story()
    story.turn(0, wrong("a"))
    story.turn(30, wrong("a"))
    assert story.turn(1, wrong("a"), wrong("b")) == []
    assert story.turn(30, wrong("a"), wrong("b")) == [Told.BEGUN]
    shared = Story()
    shared.turn(0, wrong("a", joins=True))
    shared.turn(30, wrong("a", joins=True))
    assert [shared.turn(t, wrong("a", joins=True), wrong("b", joins=True)) for t in (1, 30, 300)] == [[], [], []]


def test_it_ends_when_the_last_has_been_gone_for_long_enough() -> None:
    story = Story()
    story.turn(0, wrong("a"), wrong("b"))
    story.turn(30, wrong("a"), wrong("b"))
    assert story.turn(1, wrong("b")) == []
    assert story.turn(1) == []
    assert story.turn(59) == []
    assert story.turn(1) == [Told.ENDED]
    assert story.incidents == ()


def test_what_comes_back_at_once_has_not_ended() -> None:
    story = Story(Pace(30, 60, None))
    story.turn(0, wrong("a"))
    story.turn(30, wrong("a"))
    for _ in range(20):
        assert story.turn(40) == []
        assert story.turn(10, wrong("a")) == []


def test_what_is_gone_before_it_was_told_is_still_told() -> None:
    story = Story()
    story.turn(0, wrong("a"))
    assert [story.turn(t) for t in (10, 20, 50)] == [[], [Told.BEGUN], [Told.ENDED]]


def test_what_gets_worse_is_told_once() -> None:
    story = Story()
    story.turn(0, wrong("a", severity=Severity.WARN))
    assert story.turn(30, wrong("a", severity=Severity.WARN)) == [Told.BEGUN]
    assert story.turn(1, wrong("a")) == [Told.WORSE]
    assert story.turn(1, wrong("a", severity=Severity.WARN)) == []
    assert story.turn(1, wrong("a")) == []


def test_reminders_come_at_their_interval() -> None:
    story = Story()
    story.turn(0, wrong("a"))
    for _ in range(400):
        story.turn(10, wrong("a"))
    assert [at for at, due in story.told if due.told is Told.REMINDER] == [1030, 2030, 3030]


def test_nobody_is_reminded_where_no_interval_is_set() -> None:
    story = Story(Pace(30, 60, None))
    for _ in range(400):
        story.turn(100, wrong("a"))
    assert [due.told for _, due in story.told] == [Told.BEGUN]


_CONDITIONS = st.builds(
    wrong,
    st.sampled_from("abcdef"),
    st.sampled_from(["c1", "c2"]),
    st.sampled_from(list(Severity)),
    joins=st.booleans(),
)
_TURNS = st.lists(st.tuples(st.integers(0, 400), st.lists(_CONDITIONS, max_size=6)), max_size=40)


@given(_TURNS)
def test_every_incident_is_told_once_and_ended_once(turns: list[tuple[int, list[Condition]]]) -> None:
    story = Story()
    for seconds, conditions in turns:
        story.turn(seconds, *conditions)
        members = [member.id for incident in story.incidents for member in incident.members]
        assert sorted(members) == sorted({one.id for one in conditions}), "each condition is in one incident"
    for _ in range(_QUIET_TURNS):
        story.turn(100)
    assert story.incidents == (), "what is gone has ended"
    order: dict[str, list[Told]] = {}
    for _, due in story.told:
        order.setdefault(due.incident.id, []).append(due.told)
    for told in order.values():
        counted = Counter(told)
        assert (counted[Told.BEGUN], counted[Told.ENDED]) == (1, 1)
        assert (told[0], told[-1]) == (Told.BEGUN, Told.ENDED)
        assert counted[Told.WORSE] <= 2


@given(_TURNS)
def test_times_of_messages(turns: list[tuple[int, list[Condition]]]) -> None:
    story = Story()
    for seconds, conditions in turns:
        story.turn(seconds, *conditions)
    last: dict[str, int] = {}
    for at, due in story.told:
        incident = due.incident
        if due.told is Told.BEGUN:
            assert at - incident.began_ms >= _PACE.gather
        if due.told is Told.REMINDER:
            assert _PACE.remind is not None
            assert at - last[incident.id] >= _PACE.remind
        if due.told is Told.ENDED:
            assert incident.gone_ms is not None
            assert at - incident.gone_ms >= _PACE.settle
        last[incident.id] = at
