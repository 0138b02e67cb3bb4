"""Several evaluators share the stored problems: each message is sent once, whoever is killed."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis.strategies as st
from hypothesis import given

from mirror_assets.errors import ErrorCode, RetryError
from mirror_assets.features.alerts.alert_settings import AlertsConfig, ReceiverConfig
from mirror_assets.features.alerts.delivery import AlertDelivery
from mirror_assets.features.alerts.messages import Message
from mirror_assets.landing.problems import MessageKind, ProblemFile, ProblemKey
from mirror_assets.pipeline.evaluation import Evaluation, FailedCheck, newly_open

_MINUTE = 60_000
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
                raise RetryError("it is down.", "wait.", code=ErrorCode.RECEIVER_REFUSED)
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
