"""A secret in an expression, planted and searched for in everything that Dagster, the zone and the mirror store."""

from __future__ import annotations

import logging
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.definitions import build_definitions
from mirror_assets.orchestration.check_tables import ALL_CHECKS
from mirror_assets.orchestration.jobs import MIRROR_ALL, REPLICATE
from mirror_assets_tests import figures
from mirror_assets_tests.lab import Lab

_SALT = "planted-secret '\\ of the lake"
# What its value has in every spelling: as written, escaped, and as repr() writes it.
_PLANTED = "planted-secret"
_WORDS = "words of a row"
_BAD = {
    "unknown column": "nme || '${SALT}'",
    "syntax": "name || '${SALT}",
    "type": "name + array('${SALT}')",
    "struct": "named_struct('${SALT}', name)",
    "value": "string(CAST(name || '${SALT}' AS INT))",
}


def _texts(root: Path) -> dict[str, str]:
    return {str(path): path.read_bytes().decode("latin-1") for path in root.rglob("*") if path.is_file()}


def test_a_secret_is_in_no_record_of_dagster_and_in_no_file(
    lab: Lab,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SALT", _SALT)
    lab.sql(f"UPDATE {{t}} SET name = '{_WORDS}' WHERE id = 3")
    home = tmp_path / "home"
    home.mkdir()
    outcomes: dict[str, bool] = {}
    with caplog.at_level(logging.DEBUG), dg.instance_for_test(temp_dir=str(home)) as instance:
        for name, sql in {"good": "sha2(concat(name, '${SALT}'), 256)", **_BAD}.items():
            lab.configure(f"where: name <> '${{SALT}}'\n    columns:\n      name: \"{sql}\"")
            for job in (MIRROR_ALL, REPLICATE, ALL_CHECKS) if name == "good" else (MIRROR_ALL,):
                definitions = build_definitions(lab.config).resolve_job_def(job)
                run = definitions.execute_in_process(instance=instance, raise_on_error=False)
                outcomes[f"{name}: {job}"] = run.success
    assert [name for name, success in outcomes.items() if not success] == [f"{name}: {MIRROR_ALL}" for name in _BAD]
    printed = capfd.readouterr()
    texts = {"log": caplog.text, "output": printed.out, "errors": printed.err}
    landed = _texts(lab.root / "landing") | _texts(lab.root / "mirror")
    texts |= _texts(home) | landed | {"settings": repr(lab.config)}
    assert len(landed) > 5
    assert [place for place, text in texts.items() if _PLANTED in text] == []
    # The source has the row's words; a mask keeps them out of everything else.
    assert [place for place, text in texts.items() if _WORDS in text and "/lake/" not in place] == []
    figures.report("secrets", "places searched", len(texts))
    figures.report("secrets", "bytes searched", sum(map(len, texts.values())))
