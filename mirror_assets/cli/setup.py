"""Runs `doctor`: examines whether the landing zone and the sources are ready for mirroring; without Dagster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import note, show_json, show_line
from mirror_assets.composition import compose
from mirror_assets.config.load import load_config
from mirror_assets.pipeline.doctor import examine_sources, examine_zone
from mirror_assets.pipeline.doctor_questions import DoctorAnswer, DoctorVerdict, examine_mirror, is_well
from mirror_assets.pipeline.spark_sessions import no_spark
from mirror_assets.zones.probe import ResponseRecorder

_SHOWN = {
    DoctorVerdict.OK: "pass",
    DoctorVerdict.WARN: "warn",
    DoctorVerdict.NO: "FAIL",
    DoctorVerdict.NOT_ASKED: "not asked",
}


def doctor(path: Path | None, names: Sequence[str], *, with_spark: bool, thorough: bool, as_json: bool) -> Exit:
    """Examine the landing zone, in a scratch folder, and the sources of these tables, or all; print each answer.

    Fails if an answer is no.
    """
    project = compose(load_config(path), None if with_spark else no_spark, note)
    tables, answers = project.tables(names), list[DoctorAnswer]()

    def examine() -> Iterator[DoctorAnswer]:
        recorder = ResponseRecorder()
        store = project.config.zone.open(recorder)
        note(f"Probing {store.root}")
        yield from examine_zone(store, recorder.heard)
        if recorder.versions:
            question = "which x-ms-version does it answer with?"
            yield DoctorAnswer(store.root, question, DoctorVerdict.OK, ", ".join(recorder.versions))
        yield from examine_mirror(project.config, project.store, tables)
        yield from examine_sources(tables, with_spark=with_spark, thorough=thorough)

    for one in examine():
        answers.append(one)
        if not as_json:
            show_line(f"{_SHOWN[one.verdict]:9} {one.subject}: {one.question} {one.text}")
    if as_json:
        show_json(answers)
    else:
        verdicts = Counter(one.verdict for one in answers)
        note(", ".join(f"{number} {_SHOWN[verdict]}" for verdict, number in verdicts.items()))
    return Exit.FINE if is_well(answers) else Exit.FAILED
