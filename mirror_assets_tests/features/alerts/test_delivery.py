"""AlertDelivery: each receiver gets each message once, in order, however long it is down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import hypothesis.strategies as st
from hypothesis import given

from mirror_assets.errors import RetryError
from mirror_assets.features.alerts.alert_settings import AlertsConfig, ReceiverConfig
from mirror_assets.features.alerts.delivery import AlertDelivery
from mirror_assets.features.alerts.errors import AlertsCode
from mirror_assets.features.alerts.messages import Message
from mirror_assets.landing.problems import MessageKind, ProblemFile, ProblemKey, Severity, StoredProblem
from mirror_assets.pipeline.evaluation import Evaluation, FailedCheck, newly_open
from mirror_assets_tests.features.alerts.problems import problem

_MINUTE = 60_000


def settings(remind_hours: float | None = None, **receivers: str) -> AlertsConfig:
    listed = {name: {"url_variable": "HOOK_URL", "severity": severity} for name, severity in receivers.items()}
    return AlertsConfig.model_validate({"receivers": listed, "remind_hours": remind_hours})


class Deliveries:
    """Evaluations with receivers that are up or down, and what they got."""

    def __init__(self, alerts: AlertsConfig) -> None:
        self.settings, self.file, self.now = alerts, ProblemFile(), 0
        self.down, self.refused = set[str](), set[str]()
        self.got: list[tuple[str, MessageKind, str]] = []
        self.attempts = 0

    def send(self, name: str, _receiver: ReceiverConfig, message: Message) -> None:
        self.attempts += 1
        subject = message.title.partition("fails")[0].split(": ")[-2]
        if name in self.down or subject in self.refused:
            raise RetryError("it is busy.", "wait.", code=AlertsCode.RECEIVER_REFUSED)
        self.got.append((name, message.kind, subject))

    def evaluate(self, minutes: float, *problems: StoredProblem) -> None:
        """Evaluate after these minutes; problems that are not named have ended."""
        self.now += round(minutes * _MINUTE)
        known, now = {one.key: one for one in self.file.problems}, {one.key: one for one in problems}
        kept = [
            one.model_copy(update={"sent": known[key].sent, "claimed_ms": known[key].claimed_ms})
            if key in known
            else one
            for key, one in now.items()
        ]
        ended = [
            one.model_copy(update={"ended_ms": one.ended_ms or self.now})
            for key, one in known.items()
            if key not in now
        ]
        delivery = AlertDelivery(self.settings, self.now, self.send)
        file = delivery.claim(self.file.model_copy(update={"problems": (*kept, *ended)}), lambda _: True)
        self.file = delivery.settle(file, delivery.deliver(file))

    @property
    def kinds(self) -> list[MessageKind]:
        return [kind for _, kind, _ in self.got]


def test_receivers_get_what_reaches_their_minimum_severity() -> None:
    deliveries = Deliveries(settings(errors="error", all="info"))
    deliveries.evaluate(0, problem("a", Severity.WARN), problem("b"))
    begun = MessageKind.BEGUN
    assert sorted(deliveries.got) == [("all", begun, "a"), ("all", begun, "b"), ("errors", begun, "b")]
    deliveries.evaluate(5, problem("a"), problem("b"))
    assert sorted(deliveries.got[3:]) == [("all", MessageKind.WORSE, "a"), ("errors", begun, "a")]
    deliveries.evaluate(5)
    assert Counter(deliveries.kinds)[MessageKind.ENDED] == 4
    deliveries.evaluate(5)
    assert len(deliveries.got) == 9


def test_a_receiver_that_is_down_gets_the_beginning_later_and_not_what_has_ended_meanwhile() -> None:
    deliveries = Deliveries(settings(hook="warn", other="warn"))
    deliveries.down = {"hook"}
    deliveries.evaluate(0, problem("a"), problem("b"))
    deliveries.evaluate(5, problem("b"))
    assert [kind for name, kind, _ in deliveries.got if name == "other"] == [
        MessageKind.BEGUN,
        MessageKind.BEGUN,
        MessageKind.ENDED,
    ]
    deliveries.down = set()
    deliveries.evaluate(5, problem("b"))
    assert [(kind, subject) for name, kind, subject in deliveries.got if name == "hook"] == [(MessageKind.BEGUN, "b")]


def test_a_message_that_is_never_accepted_holds_up_no_other_and_a_dead_receiver_costs_two_attempts() -> None:
    deliveries = Deliveries(settings(hook="warn"))
    deliveries.refused = {"a"}
    deliveries.evaluate(0, problem("a"), problem("b"), problem("c"))
    assert [subject for _, _, subject in deliveries.got] == ["b", "c"]
    deliveries.down = {"hook"}
    before = deliveries.attempts
    deliveries.evaluate(5, *(problem(f"t{n}") for n in range(30)))
    assert deliveries.attempts == before + 2


def test_receivers_that_were_removed_or_added() -> None:
    deliveries = Deliveries(settings(hook="warn"))
    deliveries.evaluate(0, problem("a"))
    deliveries.settings = settings(other="warn")
    deliveries.evaluate(5, problem("a"))
    assert [name for name, *_ in deliveries.got] == ["hook", "other"]
    deliveries.settings = settings()
    deliveries.evaluate(5)
    assert len(deliveries.got) == 2


def test_problems_of_one_incident_are_one_message() -> None:
    deliveries = Deliveries(settings(hook="warn"))
    deliveries.evaluate(
        0, problem("a"), problem("a", check="retention"), *(problem(f"t{n}", incident="7") for n in range(9))
    )
    assert len(deliveries.got) == 2


def test_the_claim_of_another_evaluator_is_left_alone_for_three_minutes() -> None:
    claimed = problem("a").model_copy(update={"claimed_ms": 0})
    for minutes, messages in ((1, 0), (4, 1)):
        deliveries = Deliveries(settings(hook="warn"))
        deliveries.file = ProblemFile(problems=(claimed,))
        deliveries.evaluate(minutes, claimed)
        assert len(deliveries.got) == messages


def test_the_end_is_sent_if_the_evaluator_that_claimed_the_beginning_was_killed() -> None:
    deliveries = Deliveries(settings(hook="warn", errors="error"))
    deliveries.file = ProblemFile(problems=(problem("a", Severity.WARN).model_copy(update={"claimed_ms": 0}),))
    deliveries.evaluate(5)
    assert deliveries.got == [("hook", MessageKind.ENDED, "a")]


_KEYS = [ProblemKey(f"t{n}", "landing", "file_continuity") for n in range(3)]
_RECEIVERS = AlertsConfig.model_validate(
    {"receivers": {"hook": {"url_variable": "HOOK_URL", "severity": "info"}}, "remind_hours": None}
)


class Evaluator:
    """One process: it begins, stores, sends and settles, or is killed between any two of these."""

    def __init__(self, world: World, owner: str) -> None:
        self.world, self.owner = world, owner
        self.begun: Evaluation | None = None
        self.delivery: AlertDelivery | None = None
        self.accepted: dict[ProblemKey, dict[str, object]] | None = None

    def step(self, *, is_down: bool) -> None:
        world = self.world
        if self.begun is None:
            results = {key: FailedCheck("fails", "It has failed.") if world.truth[key] else None for key in _KEYS}
            self.begun = Evaluation(self.owner, world.file.generation, world.now, 5 * _MINUTE, results)
        elif self.delivery is None:
            self.delivery = delivery = AlertDelivery(_RECEIVERS, world.now, self._send(is_down=is_down))
            begun = self.begun
            world.change(lambda file: delivery.claim(begun.apply(file), lambda _: True))
        elif self.accepted is None:
            self.delivery.send = self._send(is_down=is_down)
            self.accepted = self.delivery.deliver(world.file)  # type: ignore[assignment]
        else:
            delivery, accepted = self.delivery, self.accepted
            world.change(lambda file: delivery.settle(file, accepted))  # type: ignore[arg-type]
            self.kill()

    def kill(self) -> None:
        self.begun = self.delivery = self.accepted = None

    def _send(self, *, is_down: bool) -> Callable[[str, ReceiverConfig, Message], None]:
        def send(_name: str, _receiver: ReceiverConfig, message: Message) -> None:
            if is_down:
                raise RetryError("it is down.", "wait.", code=AlertsCode.RECEIVER_REFUSED)
            world, (key,) = self.world, [key for key in _KEYS if f"{key.subject}:" in message.title]
            world.false_ends |= message.kind is MessageKind.ENDED and not world.was_well[key]
            world.got[key].append(message.kind)

        return send


class World:
    """The truth, the file, and what the receiver got."""

    def __init__(self) -> None:
        self.truth, self.file, self.now = dict.fromkeys(_KEYS, False), ProblemFile(), 0
        self.was_well = dict.fromkeys(_KEYS, True)
        self.false_ends = False
        self.got: dict[ProblemKey, list[MessageKind]] = {key: [] for key in _KEYS}

    def set_truth(self, key: ProblemKey, *, fails: bool) -> None:
        self.truth[key] = fails
        self.was_well[key] |= not fails

    def change(self, change: Callable[[ProblemFile], ProblemFile]) -> None:
        after = change(self.file)
        if after != self.file:
            stored = after.model_copy(update={"generation": self.file.generation + 1})
            for one in newly_open(self.file, stored):
                if self.got[one.key][-1:] != [MessageKind.BEGUN]:  # else its end has yet to be sent
                    self.was_well[one.key] = not self.truth[one.key]
            self.file = ProblemFile.model_validate_json(stored.model_dump_json())


_STEPS = st.lists(
    st.tuples(st.sampled_from(["step", "step", "truth", "wait", "kill"]), st.integers(0, 2), st.booleans()), max_size=80
)


@given(_STEPS, st.booleans())
def test_three_evaluators_neither_double_nor_lose_a_message(steps: list[tuple[str, int, bool]], kills: bool) -> None:
    world, lost = World(), False
    evaluators = [Evaluator(world, owner) for owner in "aab"]
    for kind, number, flag in steps:
        one = evaluators[number]
        if kind == "step":
            one.step(is_down=flag)
        elif kind == "truth":
            world.set_truth(_KEYS[number], fails=flag)
        elif kind == "wait":
            world.now += (number + 1) * 2 * _MINUTE
            lost |= any(other.delivery is not None for other in evaluators)  # it stood still while it sent
        elif kills:
            lost |= one.delivery is not None  # it may have sent, and can't say so
            one.kill()
    for one in evaluators:
        while one.begun is not None:
            one.step(is_down=False)
    _settle(world, evaluators[0])
    for key, fails in world.truth.items():
        assert (world.got[key][-1:] == [MessageKind.BEGUN]) is fails, "what fails now has been reported"
        world.set_truth(key, fails=False)
    _settle(world, evaluators[2])
    assert not world.false_ends, "it has failed all the time"
    for kinds in world.got.values():
        assert kinds[-1:] in ([], [MessageKind.ENDED])
        assert lost or kinds == [MessageKind.BEGUN, MessageKind.ENDED] * (len(kinds) // 2), "each once, in turns"


def _settle(world: World, evaluator: Evaluator) -> None:
    """Evaluate three times, one after another."""
    for _ in range(3):
        world.now += 6 * _MINUTE
        for _ in range(4):
            evaluator.step(is_down=False)


def test_a_claim_that_is_tried_again_is_of_the_newer_file_alone() -> None:
    delivery = AlertDelivery(settings(hook="warn"), 0)
    delivery.claim(ProblemFile(problems=(problem("a"),)), lambda _: True)
    assert delivery.has_claims
    delivery.claim(ProblemFile(), lambda _: True)
    assert not delivery.has_claims
