"""Evaluations: each problem begins once and ends once, in any order they are stored; and the texts they store."""

from __future__ import annotations

import json
from collections.abc import Iterable

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mirror_assets.landing.problems import ProblemFile, ProblemKey, Severity, StoredProblem
from mirror_assets.pipeline import evaluation
from mirror_assets.pipeline.evaluation import Evaluation, FailedCheck, cleaned, newly_open
from mirror_assets.redaction import hide
from mirror_assets_tests.errors_page import error_codes

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


@pytest.mark.parametrize(
    "code",
    ["store_denied", "run_killed", "spark_interrupted", "catalog_unavailable", "fabric_refused", "session_unfit"],
)
def test_a_fault_outside_the_tables_is_one_cause_whatever_its_message(code: str) -> None:
    assert failed("one reason", code).cause(_LAG) == failed("another", code).cause(ProblemKey("u", "landing", "lag"))


def test_the_beginnings_and_endings_name_codes() -> None:
    codes = [code.value for code in error_codes()]
    for pattern in (evaluation._SHARED, evaluation._PASSING):
        for part in pattern.pattern.removeprefix(".*").strip("()").split("|"):
            assert any(part in code for code in codes), part


def test_a_stored_problem_can_be_read_again() -> None:
    file = evaluate(ProblemFile(), 0, {_LAG: failed("a\udcff \x00 name")})
    assert ProblemFile.model_validate_json(file.model_dump_json()) == file
    assert isinstance(file.problems[0], StoredProblem)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # values of rows
        (
            "key column 'id' is NULL in 2 rows, such as row 0 «name 'Ada', day 2026-01-01», row 4 «name 'B",
            "key column 'id' is NULL in 2 rows, such as row 0 «…», row 4 «…»",
        ),
        # credentials in addresses
        ("GET https://a.example/x?sv=1&sig=aB%2Bc&se=2 failed", "GET https://a.example/x?sv=1&sig=…&se=2 failed"),
        ("s3: https://b.example/k?X-Amz-Signature=0a1b'", "s3: https://b.example/k?X-Amz-Signature=…'"),
        ("proxy http://me:secret@proxy.example:80/ refuses", "proxy http://me:…@proxy.example:80/ refuses"),
        ("abfss://lake@acme.dfs.core.windows.net/a: 403", "abfss://lake@acme.dfs.core.windows.net/a: 403"),
        ("at http://a.example:80, mail me@b.example", "at http://a.example:80, mail me@b.example"),
        # partition values in paths
        ("s3://b/t/customer=Ada%20L/day=2026/part-0.parquet", "s3://b/t/customer=…/day=…/part-0.parquet"),
        ("customer=Ada L/part-0.parquet is gone", "customer=…/part-0.parquet is gone"),
        ("the folder /lake/t/customer=Ada is empty", "the folder /lake/t/customer=… is empty"),
        ("file '/lake/customer=Ada/x', then y=1", "file '/lake/customer=…/x', then y=1"),
        ("keys=[id] in /lake/t", "keys=[id] in /lake/t"),
        # characters that can't be shown
        ("a\tb\r\nc", "a b\nc"),
        ("turned \u202egnp.exe", "turned gnp.exe"),
        ("a name of a file: \udcff", "a name of a file: "),
        ("\x1b[31mred\x07", "[31mred"),
        ("שלום 👩‍🚀", "שלום 👩‍🚀"),
    ],
)
def test_private_values_and_characters_that_can_not_be_shown_are_left_out(text: str, shown: str) -> None:
    assert cleaned(text) == shown


def test_a_secret_is_shown_as_its_variable() -> None:
    hide("LAKE_KEY", "a-secret-of-the-lake")
    assert cleaned("refused: a-secret-of-the-lake") == "refused: ${LAKE_KEY}"


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=3000))
def test_any_text_is_short_and_can_be_stored(text: str) -> None:
    kept = cleaned(text)
    assert len(kept) <= 1500
    assert json.loads(json.dumps(kept).encode()) == kept
