"""The outbox: nothing is lost, nothing is sent twice without a failure, quiet hours delay."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mirror_assets.alerts.incidents import Told
from mirror_assets.alerts.messages import Message
from mirror_assets.alerts.outbox import Outcome, Waiting, queued, ready, settled
from mirror_assets.config.alerts import QuietHours, Severity
from mirror_assets_tests.alerts.lettered import AT, HOUR, hook, letter

_MINUTE = 60_000


def test_receivers_choose_by_severity_and_topic() -> None:
    receivers = {
        "errors": hook(severity="error"),
        "all": hook(severity="info"),
        "checks": hook(severity="info", topics=["check"]),
    }
    waiting = queued((), [letter(severity=Severity.WARN), letter(incident="i2")], receivers)
    assert [(entry.receiver, entry.message.incident) for entry in waiting] == [
        ("all", "i1"),
        ("errors", "i2"),
        ("all", "i2"),
    ]


def test_messages_of_one_incident_keep_their_order_and_others_go_on() -> None:
    receivers = {"hook": hook()}
    waiting = queued((), [letter(), letter(Told.ENDED), letter(incident="i2")], receivers)
    assert [entry.message.told for entry in ready(waiting, receivers, AT)] == [Told.BEGUN, Told.BEGUN]
    first = ready(waiting, receivers, AT)[0]
    failed = settled(waiting, [Outcome("hook", first.message.id, "HTTP 500")], AT)
    assert [entry.message.incident for entry in ready(failed, receivers, AT)] == ["i2"]
    assert ready(failed, receivers, AT + 15_000)[0].why == "HTTP 500"


def test_pauses_double_up_to_a_quarter_of_an_hour_and_heed_what_the_receiver_asks_for() -> None:
    receivers, now = {"hook": hook()}, AT
    waiting = queued((), [letter()], receivers)
    pauses = []
    for _ in range(9):
        waiting = settled(waiting, [Outcome("hook", waiting[0].message.id, "no")], now)
        pauses.append((waiting[0].next_ms - now) // 1000)
        now = waiting[0].next_ms
    assert pauses == [15, 30, 60, 120, 240, 480, 900, 900, 900]
    asked = settled(queued((), [letter()], receivers), [Outcome("hook", letter().id, "busy", 77.0)], AT)
    assert asked[0].next_ms - AT == 77_000


def test_a_reminder_is_left_out_while_an_earlier_message_waits() -> None:
    receivers = {"hook": hook()}
    waiting = queued((), [letter()], receivers)
    assert len(queued(waiting, [letter(Told.REMINDER, at=AT + HOUR)], receivers)) == 1
    assert len(queued((), [letter(Told.REMINDER, at=AT + HOUR)], receivers)) == 1


def test_a_receiver_that_is_gone_from_the_settings_keeps_no_messages() -> None:
    waiting = queued((), [letter()], {"hook": hook()})
    assert queued(waiting, [], {"other": hook()}) == ()


def test_what_could_not_be_delivered_for_a_week_is_dropped() -> None:
    waiting = queued((), [letter()], {"hook": hook()})
    assert len(settled(waiting, [], AT + 6 * 24 * HOUR)) == 1
    assert settled(waiting, [], AT + 8 * 24 * HOUR) == ()


def test_a_receiver_that_takes_nothing_for_a_week_keeps_a_thousand_messages() -> None:
    receivers = {"dead": hook(), "works": hook()}
    ongoing = [letter(incident=f"ongoing{n}", at=AT) for n in range(500)]
    outbox = queued((), [*ongoing, letter(Told.ENDED, incident="told")], receivers)
    for n in range(2000):
        told = [letter(told, incident=f"over{n}", at=AT + n) for told in (Told.BEGUN, Told.ENDED)]
        outbox = queued(outbox, told, receivers)
        outbox = tuple(entry for entry in outbox if entry.receiver == "dead")
    waiting = [(entry.message.incident, entry.message.told) for entry in outbox]
    assert len(waiting) <= 1000
    assert {(one.incident, Told.BEGUN) for one in ongoing} <= set(waiting), "what lasts is still told"
    assert ("told", Told.ENDED) in waiting, "who was told of a beginning is told of the end"
    counted = Counter(incident for incident, _ in waiting if incident.startswith("over"))
    assert set(counted.values()) == {2}, "no end without its beginning"
    assert ("over1999", Told.ENDED) in waiting


@pytest.mark.parametrize(
    ("begin", "end", "quiet"),
    [("22:00", "07:00", range(1260, 1800)), ("01:00", "02:00", range(60))],
)
def test_quiet_hours_may_go_over_midnight(begin: str, end: str, quiet: range) -> None:
    hours = QuietHours.model_validate({"from": begin, "to": end, "zone": "Europe/Berlin"})
    for minute in range(0, 1440, 7):  # AT is 01:00 in Berlin
        in_quiet = minute in quiet or minute - 1440 in quiet or minute + 1440 in quiet
        assert hours.cover(AT + minute * _MINUTE) is in_quiet, minute


def test_summer_time_counts() -> None:
    hours = QuietHours.model_validate({"from": "22:00", "to": "07:00", "zone": "Europe/Berlin"})
    summer = 1_782_856_800_000  # 2026-06-30 22:00 UTC, midnight in Berlin
    assert hours.cover(summer)
    assert hours.cover(summer + 7 * HOUR - _MINUTE)
    assert not hours.cover(summer + 7 * HOUR)


@pytest.mark.parametrize("day", ["2026-03-28", "2026-03-29", "2026-10-24", "2026-10-25"])
@pytest.mark.parametrize(("begin", "end"), [("22:00", "07:00"), ("02:15", "02:45"), ("23:00", "22:00")])
def test_quiet_hours_end_within_a_day_when_clocks_change(day: str, begin: str, end: str) -> None:
    hours = QuietHours.model_validate({"from": begin, "to": end, "zone": "Europe/Berlin"})
    midnight = int(datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp() * 1000)
    quiet = [hours.cover(midnight + minute * _MINUTE) for minute in range(0, 2 * 1440, 5)]
    longest = max(len(run) for run in "".join("q" if one else "." for one in quiet).split("."))
    assert longest * 5 <= 24 * 60


def test_quiet_hours_let_through_what_is_bad_enough() -> None:
    quiet = {"from": "22:00", "to": "07:00", "unless": "error"}
    receivers = {"hook": hook(quiet_hours=quiet)}
    waiting = queued((), [letter(severity=Severity.WARN), letter(incident="i2")], receivers)
    assert [entry.message.incident for entry in ready(waiting, receivers, AT)] == ["i2"]
    assert len(ready(waiting, receivers, AT + 7 * HOUR)) == 2


_LETTERS = st.lists(
    st.builds(
        letter, st.sampled_from([Told.BEGUN, Told.ENDED]), st.sampled_from(list(Severity)), st.sampled_from("ab")
    ),
    max_size=6,
    unique_by=lambda one: one.id,
)


@given(st.lists(st.tuples(_LETTERS, st.integers(0, 4 * 60), st.lists(st.booleans(), max_size=8)), max_size=20))
def test_every_message_is_delivered_once_and_none_in_quiet_hours(
    story: list[tuple[list[Message], int, list[bool]]],
) -> None:
    receivers = {"hook": hook(severity="info", quiet_hours={"from": "22:00", "to": "07:00"})}
    hours = receivers["hook"].quiet_hours
    assert hours is not None
    outbox, now, sent, made = tuple[Waiting, ...](), AT, list[str](), list[str]()
    for turn, (letters, minutes, answers) in enumerate(story):
        fresh = [one.model_copy(update={"id": f"{one.id}-{turn}", "at_ms": now}) for one in letters]
        made += [one.id for one in fresh]
        outbox, now = queued(outbox, fresh, receivers), now + minutes * _MINUTE
        tried = ready(outbox, receivers, now)
        assert not (tried and hours.cover(now))
        outcomes = [
            Outcome("hook", entry.message.id, None if taken else "no")
            for entry, taken in zip(tried, answers, strict=False)
        ]
        sent += [outcome.message for outcome in outcomes if outcome.is_delivered]
        outbox = settled(outbox, outcomes, now)
    while outbox:
        now += HOUR
        tried = ready(outbox, receivers, now)
        sent += [entry.message.id for entry in tried]
        outbox = settled(outbox, [Outcome("hook", entry.message.id) for entry in tried], now)
    assert Counter(sent) == Counter(made)
