"""Evaluations: each problem begins once and ends once, whoever evaluates, in whatever order they store."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mirror_assets.alerts.delivery import Delivery
from mirror_assets.alerts.messages import Message
from mirror_assets.config.alerts import AlertsConfig, ReceiverConfig
from mirror_assets.errors import ErrorCode, RetryError
from mirror_assets.landing.problems import MessageKind, ProblemFile, ProblemKey, Severity, StoredProblem
from mirror_assets.pipeline import evaluation
from mirror_assets.pipeline.evaluation import Evaluation, FailedCheck, newly_open

_MINUTE = 60_000
_LAG, _CONTINUITY = ProblemKey("t", "landing", "lag"), ProblemKey("t", "landing", "file_continuity")


def failed(
    text: str = "it is gone",
    code: str | None = "log_gap",
    severity: Severity = Severity.ERROR,
    *,
    may_pass: bool = False,
) -> FailedCheck:
    return FailedCheck("check fails", text, severity, code=code, may_pass=may_pass)


def evaluate(
    file: ProblemFile,
    minute: float,
    results: dict[ProblemKey, FailedCheck | None],
    *,
    owner: str = "a",
    generation: int | None = None,
    known: Iterable[ProblemKey] | None = None,
) -> ProblemFile:
    """Return the file after an evaluation that began with this generation, by default the newest."""
    one = Evaluation(
        owner,
        file.generation if generation is None else generation,
        round(minute * _MINUTE),
        5 * _MINUTE,
        results,
        None if known is None else frozenset(known),
    )
    after = one.apply(file)
    return file if after == file else after.model_copy(update={"generation": file.generation + 1})


def is_open(file: ProblemFile) -> list[ProblemKey]:
    return [one.key for one in file.problems if one.is_open]


def test_an_error_that_a_retry_can_not_resolve_opens_at_once_and_ends_when_it_passes() -> None:
    file = evaluate(ProblemFile(), 0, {_CONTINUITY: failed()})
    assert is_open(file) == [_CONTINUITY]
    assert [one.key for one in newly_open(ProblemFile(), file)] == [_CONTINUITY]
    again = evaluate(file, 5, {_CONTINUITY: failed()})
    assert again == file, "an unchanged problem is not written again"
    ended = evaluate(file, 10, {_CONTINUITY: None})
    assert is_open(ended) == []
    assert newly_open(file, ended) == []


@pytest.mark.parametrize(
    "suspect",
    [
        failed(severity=Severity.WARN),
        failed(may_pass=True),
        failed(code="source_unavailable"),
        failed(code="run_killed"),
    ],
)
def test_what_may_pass_opens_with_the_second_evaluation_that_finds_it(suspect: FailedCheck) -> None:
    first = evaluate(ProblemFile(), 0, {_LAG: suspect})
    assert is_open(first) == []
    assert is_open(evaluate(first, 2, {_LAG: suspect})) == [], "half an interval has not passed"
    assert is_open(evaluate(first, 4, {_LAG: suspect}, generation=0)) == [], "it began before the first was stored"
    assert is_open(evaluate(first, 3, {_LAG: suspect})) == [_LAG]
    assert is_open(evaluate(first, -90, {_LAG: suspect})) == [_LAG], "a clock that was set back hides nothing"
    passed = evaluate(first, 5, {_LAG: None})
    assert is_open(evaluate(passed, 10, {_LAG: suspect})) == []


def test_an_evaluator_speaks_only_for_what_it_has_evaluated() -> None:
    file = evaluate(ProblemFile(), 0, {_CONTINUITY: failed(), _LAG: failed()})
    assert is_open(evaluate(file, 5, {_LAG: None})) == [_CONTINUITY]
    assert is_open(evaluate(file, 5, {}, owner="b", known=())) == is_open(file), "another owner's"
    assert is_open(evaluate(file, 5, {}, known=[_CONTINUITY])) == [_CONTINUITY], "the check no longer exists"


def test_an_evaluation_that_began_earlier_changes_nothing_that_a_later_one_has_stored() -> None:
    file = evaluate(ProblemFile(), 0, {_CONTINUITY: failed()})
    ended = evaluate(file, 5, {_CONTINUITY: None})
    assert evaluate(ended, 5, {_CONTINUITY: failed()}, generation=file.generation - 1) == ended
    assert evaluate(file, 5, {_CONTINUITY: None}, generation=file.generation - 1) == file


def test_an_ended_problem_is_forgotten_after_an_hour() -> None:
    file = evaluate(evaluate(ProblemFile(), 0, {_CONTINUITY: failed()}), 5, {_CONTINUITY: None})
    assert len(evaluate(file, 60, {_CONTINUITY: None}).problems) == 1
    assert evaluate(file, 70, {_CONTINUITY: None}).problems == ()


def test_another_message_is_the_same_problem_and_another_code_a_new_one() -> None:
    first = evaluate(ProblemFile(), 0, {_CONTINUITY: failed("3 files are gone")})
    assert evaluate(first, 5, {_CONTINUITY: failed("4 files are gone")}) == first, "only a number differs"
    other = evaluate(first, 5, {_CONTINUITY: failed("the folder is gone")})
    assert [one.text for one in other.problems] == ["the folder is gone"]
    assert newly_open(first, other) == []
    code = evaluate(first, 5, {_CONTINUITY: failed(code="feed_disabled")})
    assert [one.code for one in newly_open(first, code)] == ["feed_disabled"]
    assert [one.incident for one in code.problems] == [one.incident for one in first.problems]


def test_a_failure_that_may_pass_replaces_no_certain_one() -> None:
    first = evaluate(ProblemFile(), 0, {_CONTINUITY: failed()})
    assert evaluate(first, 5, {_CONTINUITY: failed("503", "source_unavailable")}) == first


def test_a_warning_that_becomes_an_error_is_a_new_error() -> None:
    warned = failed(severity=Severity.WARN)
    file = evaluate(evaluate(ProblemFile(), 0, {_LAG: warned}), 5, {_LAG: warned})
    worse = evaluate(file, 10, {_LAG: failed()})
    assert [one.key for one in newly_open(file, worse)] == [_LAG]


def test_problems_of_one_table_share_an_incident_and_so_do_those_of_many_tables_with_one_cause() -> None:
    file = evaluate(ProblemFile(), 0, {_CONTINUITY: failed(), _LAG: failed("late")})
    assert len({one.incident for one in file.problems}) == 1
    denied = {
        ProblemKey(f"sales.t{n}", "source", "readable"): failed(f"s3://acme/t{n} refuses", "store_denied")
        for n in range(4)
    }
    many = evaluate(
        file, 5, {**denied, ProblemKey("other", "source", "readable"): failed("s3://b/t refuses", "store_denied")}
    )
    by_subject = {one.subject: one.incident for one in many.problems}
    assert len({by_subject[f"sales.t{n}"] for n in range(4)}) == 1
    assert len(set(by_subject.values())) == 3
    few = evaluate(ProblemFile(), 0, dict(list(denied.items())[:3]))
    assert len({one.incident for one in few.problems}) == 3, "three tables get a message each"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sales.a: version 7 has waited 1,200 s", "sales.b: version 12 has waited 3 s"),
        ("part-1 is gone, of run 0a1b2c3d-0000-1111-2222-333344445555", "part-2 is gone, of run ffffffffffff"),
        ("/lake/a/_delta_log can't be read", "/lake/b/_delta_log  can't be read"),
        ("row 0 «name 'Ada'» of a", "row 0 «name 'Bob'» of b"),
    ],
)
def test_messages_that_differ_in_names_numbers_paths_ids_and_values_are_one_cause(one: str, other: str) -> None:
    causes = [
        failed(text, None).cause(ProblemKey(f"sales.{name}", "", "lag")) for text, name in ((one, "a"), (other, "b"))
    ]
    assert causes[0] == causes[1]


def test_other_messages_codes_stores_and_checks_are_other_causes() -> None:
    def denied(account: str) -> str:
        return failed(f"abfss://lake@{account}.dfs.core.windows.net/t refuses.", "store_denied").cause(_LAG)

    found = {failed(f"column {name} has NULL", None).cause(_LAG) for name in ("id", "day")}
    found |= {failed("it", None).cause(_LAG), failed("it").cause(_LAG), failed("it", None).cause(_CONTINUITY)}
    found |= {denied("acme"), denied("other")}
    assert len(found) == 7
    assert failed("a NULL key", "checks_failed").cause(_LAG) == "checks_failed t"


def test_the_beginnings_and_endings_name_codes() -> None:
    codes = [code.value for code in ErrorCode]
    for pattern in (evaluation._SHARED, evaluation._PASSING):
        for part in pattern.pattern.removeprefix(".*").strip("()").split("|"):
            assert any(part in code for code in codes), part


_KEYS = [ProblemKey(f"t{n}", "landing", "file_continuity") for n in range(3)]
_RECEIVERS = AlertsConfig.model_validate(
    {"receivers": {"hook": {"url_variable": "HOOK_URL", "severity": "info"}}, "remind_hours": None}
)


class Evaluator:
    """One process: it begins, stores, sends and settles, or is killed between any two of these."""

    def __init__(self, world: World, owner: str) -> None:
        self.world, self.owner = world, owner
        self.begun: Evaluation | None = None
        self.delivery: Delivery | None = None
        self.accepted: dict[ProblemKey, dict[str, object]] | None = None

    def step(self, *, is_down: bool) -> None:
        world = self.world
        if self.begun is None:
            results = {key: failed() if world.truth[key] else None for key in _KEYS}
            self.begun = Evaluation(self.owner, world.file.generation, world.now, 5 * _MINUTE, results)
        elif self.delivery is None:
            self.delivery = delivery = Delivery(_RECEIVERS, world.now, self._send(is_down=is_down))
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


def test_a_stored_problem_can_be_read_again() -> None:
    file = evaluate(ProblemFile(), 0, {_LAG: failed("a\udcff \x00 name")})
    assert ProblemFile.model_validate_json(file.model_dump_json()) == file
    assert isinstance(file.problems[0], StoredProblem)
