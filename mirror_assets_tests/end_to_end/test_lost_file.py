"""A live data file of the source is gone, and the rebuild that it causes fails: one problem until the file is back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from deltalake import DeltaTable

from mirror_assets.definitions import build_definitions
from mirror_assets.orchestration.check_jobs import CHECKS
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.web import WebReceiver, web_receiver


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebReceiver]:
    with web_receiver() as started:
        monkeypatch.setenv("HOOK_URL", started.url)
        yield started


@pytest.mark.long(30)
def test_a_file_that_is_gone_is_one_message_with_a_step_that_helps(lab: Lab, receiver: WebReceiver) -> None:
    lab.configure()
    with lab.config_file.open("a") as file:
        file.write("alerts: {receivers: {hook: {url_variable: HOOK_URL}}}\n")
    lab.sql("INSERT INTO {t} VALUES (100, 'new', 1)")
    definitions = build_definitions(lab.config)
    with dg.instance_for_test() as instance:

        def run(job: str) -> bool:
            found = definitions.resolve_job_def(job)
            return found.execute_in_process(instance=instance, raise_on_error=False).success

        assert run(MIRROR_ALL)
        before = set(DeltaTable(lab.uri).file_uris())
        lab.sql("INSERT INTO {t} VALUES (101, 'lost', 1)")
        (lost,) = set(DeltaTable(lab.uri).file_uris()) - before
        path = Path(lost.removeprefix("file://"))
        path.rename(lab.root / "elsewhere.parquet")
        for _ in range(2):
            assert not run(MIRROR_ALL)
            run(CHECKS)
        assert receiver.titles() == [f"{TABLE}: check not_failing fails (data_file_missing)"]
        (text,) = receiver.messages()
        assert f"2 runs of {TABLE} failed: the rebuild fails as well: " in text
        assert path.name in text
        assert "Next: restore the file, or repair the source" in text
        (lab.root / "elsewhere.parquet").rename(path)
        assert run(MIRROR_ALL)
        run(CHECKS)
        assert receiver.titles()[1:] == [f"Ended: {TABLE}: check not_failing fails (data_file_missing)"]
    assert lab.compare().state.value == "equal"
