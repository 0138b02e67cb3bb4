"""A report can be attached to a bug report: nothing in it is secret, or names a tenant, a workspace or a person."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from mirror_assets import redaction
from mirror_assets.features.fabric.accept.acceptance import AcceptVerdict, ExerciseAnswer
from mirror_assets.features.fabric.accept.report import AcceptReport

_GUID = "11111111-2222-3333-4444-555555555555"
_PRIVATE = {
    f"https://onelake.dfs.fabric.microsoft.com/{_GUID}/x?sig=abc": "URL",
    f"abfss://{_GUID}@onelake.dfs.fabric.microsoft.com/{_GUID}/Tables": "URL",
    "contoso.z11.dfs.fabric.microsoft.com": "HOST",
    "contoso.onmicrosoft.com": "HOST",
    _GUID: "GUID",
    _GUID.replace("-", ""): "GUID",
    "jane.doe@contoso.com": "ADDRESS",
    "eyJ0eXAi.eyJhdWQi.c2lnbmF0dXJl": "TOKEN",
    "client_secret=hunter2": "client_TOKEN",
    "Sales of Contoso": "NAME",
}


def _report(seen: str) -> AcceptReport:
    steps, moment = {"first load": 1.0}, datetime(2026, 11, 29, 17, tzinfo=timezone.utc)
    answer = ExerciseAnswer("gap", "It waits.", seen, AcceptVerdict.DIFFERS, 1.0, "Rebuild.", steps, ["SELECT 1;"])
    return AcceptReport(moment, moment, 60.0, (answer,))


@pytest.mark.parametrize("private", _PRIVATE)
def test_private_texts_are_replaced(private: str) -> None:
    (answer,) = _report(f"before {private} after").shareable(["Sales of Contoso"]).answers
    assert answer.seen == f"before {_PRIVATE[private]} after"


def test_values_of_variables_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_references", {"s3cret!": "${AZURE_CLIENT_SECRET}"})
    (answer,) = _report("s3cret! is wrong").shareable([]).answers
    assert answer.seen == "${AZURE_CLIENT_SECRET} is wrong"


def test_both_files_have_the_same_answers(tmp_path: Path) -> None:
    markdown, document = _report("a line\nand another | one").shareable([]).write(tmp_path)
    page, facts = markdown.read_text(), json.loads(document.read_text())
    assert "| gap | differs | 1.0 |" in page
    assert "- seen: a line and another | one" in page
    assert "- waits: first load 1.0 s" in page
    assert "```sql\nSELECT 1;\n```" in page
    assert facts["answers"][0]["verdict"] == "differs"
    assert facts["versions"]["mirror-assets"] in page
