"""Compares an evaluation of checks with the stored problems: which begin, get worse, persist or end.

It is a pure function of both. It has no receiver, no clock and no Dagster.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator
from pydantic.dataclasses import dataclass as validated

from mirror_assets.errors import ErrorCode
from mirror_assets.landing.problems import MessageKind, ProblemFile, ProblemKey, Severity, StoredProblem
from mirror_assets.redaction import redacted, without_values

_LONGEST = 1500
# Control characters except line breaks, characters that change the direction of text, and halves of a character, which
# JSON can't hold: file names may.
_UNFIT = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udfff]")
# Passwords in addresses, signatures of Azure Storage, S3 and Google Cloud Storage, and partition values in paths.
_PRIVATE = (
    re.compile(r"(://[^\s:/@'\"]*:)[^\s/@'\"]+(@)"),
    re.compile(r"([?&](?:sig|x-(?:amz|goog)-(?:signature|credential|security-token))=)[^\s&'\"]+()", re.IGNORECASE),
    re.compile(r"(\b[\w%.~-]+=)[^/\n,;:()\[\]'\"«»?&]+(/)"),
    re.compile(r"(/[\w%.~-]+=)[^\s/,;:()'\"]+()"),
)


def cleaned(text: str, longest: int = _LONGEST) -> str:
    """Return the text as it may leave the project: without secrets, values of rows and control characters, and short.

    A text that is cut ends in `…`.
    """
    text = without_values(redacted(text))
    for pattern in _PRIVATE:
        text = pattern.sub(r"\1…\2", text)
    text = _UNFIT.sub(lambda found: " " if found[0] in "\t\u2028\u2029" else "", text)
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


# Problems of more subjects than this that begin together, with one cause, share their messages.
_APART = 3
# An ended problem is stored this long, so that an evaluation that began before its end can't begin it again.
_ENDED_MS = 3_600_000
# Codes of faults outside the table, in something that many tables need: a store, a catalog, Fabric, the Spark session.
_SHARED = re.compile(
    "store_|credential|certificate_|token_|item_|config_|source_unavailable|session_|spark_interrupted|run_killed|"
    "catalog_unavailable|catalog_refused|fabric_|mirroring_"
)
# Endings of codes after which the next run probably succeeds.
_PASSING = re.compile(".*(_unavailable|_throttled|_busy|_interrupted|_not_staged|_killed|outcome_unknown)")
_AUTHORITY = re.compile(r"\b([a-z][a-z0-9+.-]*://[^/\s'\",;)]+)", re.IGNORECASE)
# What differs between subjects that have the same fault: names in code, ids, paths and numbers.
_VARYING = re.compile(r"\b[0-9a-f-]{12,}\b|(?<![\w:/])\.?/[^\s'\",;:)]+|\d[\d,._:]*|\s+", re.IGNORECASE)
Cleaned = Annotated[str, BeforeValidator(cleaned)]


@validated(frozen=True)
class FailedCheck:
    """A failed check of an evaluation; its texts are cleaned when it is made, because they are stored and sent.

    `what` is a few words that follow the subject. `page` is a path in Dagster's UI. A check that `may_pass` is a
    problem once a second evaluation has found it; so is every warning.
    """

    what: Cleaned
    text: Cleaned
    severity: Severity = Severity.ERROR
    next_step: Cleaned = ""
    code: str | None = None
    page: str | None = None
    may_pass: bool = False

    @property
    def is_certain(self) -> bool:
        """Whether one evaluation is enough."""
        passing = _PASSING.fullmatch(self.code or "") is not None
        return self.severity is Severity.ERROR and not self.may_pass and not passing

    def cause(self, key: ProblemKey) -> str:
        """Return a text that problems with the same cause have in common.

        For a fault outside the table, it is the code and the store, account or server that the message names first. For
        any other, it is the code or the check, and the message without what differs between subjects.
        """
        if self.code == ErrorCode.CHECKS_FAILED.value:
            return f"{self.code} {key.subject}"
        if _SHARED.match(self.code or ""):
            place = _AUTHORITY.search(self.text)
            return f"{self.code} {place[1].lower() if place else 'here'}"
        names = "|".join(re.escape(name) for name in (key.subject, key.subject.rpartition(".")[2]) if name)
        text = _VARYING.sub(" ", re.sub(rf"(?<!\w)({names})(?!\w)", " ", self.text)).lower()
        return f"{self.code or key.check} {_digest(text)}"


@dataclass(frozen=True)
class Evaluation:
    """The results of an evaluation that began at this time (ms since 1970), when the file had this generation.

    `results` has the checks that were evaluated; None for one that passed. `known` are all checks of the `owner`'s
    configuration, or None if only some were selected: the owner's problems of other subjects and checks have ended
    then. `interval_ms` is the time between two evaluations.
    """

    owner: str
    generation: int
    began_ms: int
    interval_ms: int
    results: Mapping[ProblemKey, FailedCheck | None]
    known: frozenset[ProblemKey] | None = None

    def apply(self, file: ProblemFile) -> ProblemFile:
        """Return the file after this evaluation.

        What an evaluation that began later has stored stays as it is.
        """
        after, next_generation = dict[ProblemKey, StoredProblem](), file.generation + 1
        for problem in file.problems:
            kept = self._after(problem, next_generation)
            if kept is not None:
                after[problem.key] = kept
        for key, failed in self.results.items():
            if failed is not None and key not in after:
                after[key] = self._begun(key, failed, next_generation)
        return file.model_copy(update={"problems": _with_incidents(list(after.values()), next_generation)})

    def _after(self, problem: StoredProblem, generation: int) -> StoredProblem | None:
        """Return a stored problem after this evaluation; None if it can be forgotten."""
        is_outdated = problem.generation > self.generation
        is_unknown = self.known is not None and problem.owner == self.owner and problem.key not in self.known
        if is_outdated or (problem.key not in self.results and not is_unknown):
            return problem
        failed = self.results.get(problem.key)
        if failed is not None:
            return self._persisting(problem, failed, generation)
        if problem.ended_ms is None:
            return problem.model_copy(update={"ended_ms": self.began_ms, "generation": generation})
        is_reported = all(sent.kind is MessageKind.ENDED for sent in problem.sent.values())
        return None if is_reported and self.began_ms - problem.ended_ms > _ENDED_MS else problem

    def _persisting(self, problem: StoredProblem, failed: FailedCheck, generation: int) -> StoredProblem:
        """Return the problem with its newest message; an equal one, but for numbers, is not stored again.

        A failure that may pass replaces no certain one. Another code of a certain one is a new problem.
        """
        new = self._begun(problem.key, failed, generation)
        if problem.ended_ms is not None:
            continues = any(sent.kind is not MessageKind.ENDED for sent in problem.sent.values())
            first_ms, incident = (problem.first_ms, problem.incident) if continues else (new.first_ms, new.incident)
            return new.model_copy(update={"first_ms": first_ms, "incident": incident, "sent": problem.sent})
        is_second = not 0 <= self.began_ms - problem.first_ms < self.interval_ms / 2
        opens = problem.incident is None and (failed.is_certain or is_second)
        is_same = (problem.severity, problem.code, problem.cause) == (new.severity, new.code, new.cause)
        is_milder = problem.is_open and problem.severity is Severity.ERROR and not failed.is_certain
        if not opens and (is_same or is_milder):
            return problem
        kept: dict[str, object] = {
            "first_ms": problem.first_ms,
            "incident": "" if opens else problem.incident,
        }
        if new.code == problem.code:
            kept |= {"sent": problem.sent, "claimed_ms": problem.claimed_ms}
        return new.model_copy(update=kept)

    def _begun(self, key: ProblemKey, failed: FailedCheck, generation: int) -> StoredProblem:
        """Return a new problem; with an empty incident, which is still to be named, if one evaluation is enough."""
        return StoredProblem(
            subject=key.subject,
            asset=key.asset,
            check=key.check,
            severity=failed.severity,
            what=failed.what,
            text=failed.text,
            next_step=failed.next_step,
            code=failed.code,
            cause=failed.cause(key),
            page=failed.page,
            owner=self.owner,
            generation=generation,
            first_ms=self.began_ms,
            incident="" if failed.is_certain else None,
        )


def _with_incidents(problems: list[StoredProblem], generation: int) -> tuple[StoredProblem, ...]:
    """Name the incidents of problems that have just become certain.

    A subject's problems share one. If more than a few subjects have one cause, theirs do.
    """
    new = [one for one in problems if one.incident == ""]
    subjects = Counter(cause for _, cause in {(one.subject, one.cause) for one in new})
    # The incidents that are those of a subject alone.
    known = {
        one.subject: one.incident
        for one in problems
        if one.is_open and one.incident and one.incident.endswith(f"-{_digest(one.subject)}")
    }

    def named(one: StoredProblem) -> StoredProblem:
        if one.incident != "":
            return one
        if subjects[one.cause] > _APART:
            return one.model_copy(update={"incident": f"{generation}-{_digest(one.cause)}"})
        incident = known.setdefault(one.subject, f"{generation}-{_digest(one.subject)}")
        return one.model_copy(update={"incident": incident})

    return tuple(sorted(map(named, problems), key=lambda one: one.key))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def newly_open(before: ProblemFile, after: ProblemFile) -> list[StoredProblem]:
    """Return the problems that are errors now and were not open errors with this code before, in order."""
    open_before = {(one.key, one.code) for one in before.problems if one.is_open and one.severity is Severity.ERROR}
    errors = (one for one in after.problems if one.is_open and one.severity is Severity.ERROR)
    return [one for one in errors if (one.key, one.code) not in open_before]
