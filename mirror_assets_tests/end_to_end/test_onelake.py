"""The whole way into a landing zone on OneLake, through the real SDK and the real abfs driver."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from mirror_assets.config.load import load_config
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.names import PROCESSED, landing_name
from mirror_assets.landing.publish import Outcome
from mirror_assets.pipeline.check_slice import require_passed, run_checks
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.land_slice import publish_slice
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.rebuild_table import rebuild_table
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.pipeline.stage import stage_attempt
from mirror_assets.verify.landed import file_continuity
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets.zones.onelake.onelake_zone import Staging
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.worlds.onelake import LoopbackOneLake, Operation
from mirror_assets_tests.worlds.onelake.lab import OneLakeLab
from mirror_assets_tests.worlds.onelake.stores import loopback_store


@pytest.fixture(params=Staging)
def zone(request: pytest.FixtureRequest, lab: Lab, onelake: LoopbackOneLake) -> OneLakeLab:
    """The lab's table and an empty landing zone, for each way to stage."""
    return OneLakeLab.on(lab, onelake, request.param)


@pytest.fixture(params=[Staging.UPLOAD, pytest.param(Staging.DIRECT, marks=pytest.mark.soak)])
def landed(request: pytest.FixtureRequest, lab: Lab, onelake: LoopbackOneLake) -> OneLakeLab:
    """The same for what happens to files that have landed, whoever has written them."""
    return OneLakeLab.on(lab, onelake, request.param)


@pytest.fixture
def uploading(lab: Lab, onelake: LoopbackOneLake) -> OneLakeLab:
    """The same where parts are uploaded."""
    return OneLakeLab.on(lab, onelake, Staging.UPLOAD)


def require_equal(zone: OneLakeLab) -> None:
    """Fail unless the mirror equals its source once the stand-in has applied everything."""
    zone.replicator.poll()
    assert reconcile_table(zone.context, zone.replicator).state is ReconcileState.EQUAL


def stage_next(context: TableContext) -> SliceRecord:
    """Stage the next slice; return its record."""
    plan = plan_table(context)
    return stage_attempt(context, plan.slices[0], plan.position)


def test_a_history_ends_equal_to_its_source(zone: OneLakeLab) -> None:
    zone.mirror()
    zone.lab.change()
    zone.mirror()
    assert zone.folder == [landing_name(number) for number in (1, 2, 3)]
    require_equal(zone)
    assert zone.item.names(f"{TABLE.folder}/{PROCESSED}") == [landing_name(1), landing_name(2)]
    assert zone.staged == []


def test_a_landing_file_costs_two_requests_and_a_slice_twenty(uploading: OneLakeLab) -> None:
    uploading.mirror()
    uploading.lab.change()
    context = uploading.context
    uploading.server.log.reset()
    staged = stage_next(context)
    uploads = uploading.server.log.counts("*/parts/*")
    record, results = run_checks(context, staged)
    require_passed(context, record, results)
    uploading.server.log.reset()
    publish_slice(context, record.slice)
    requested = uploading.server.log.counts()
    assert uploads[Operation.PUT_BLOB] == requested[Operation.RENAME] == len(record.parts) == 1
    assert sum(requested.values()) - 1 <= 20, requested


def test_a_rewritten_landing_file_is_detected(landed: OneLakeLab) -> None:
    landed.mirror()
    landed.lab.change()
    landed.mirror()
    path = TABLE.landing_file(2)
    data = bytearray(landed.item.read(path))
    data[40] ^= 1
    landed.item.write(path, bytes(data))
    result = file_continuity(landed.store, TABLE, applied=0)
    assert result.problems == (f"{path} does not have the content that was committed",)


def test_an_etag_that_a_rename_did_not_keep_is_no_damage(landed: OneLakeLab) -> None:
    landed.mirror()
    path = TABLE.landing_file(1)
    landed.item.write(path, landed.item.read(path))
    assert file_continuity(landed.store, TABLE, applied=0).passed
    landed.lab.change()
    landed.mirror()
    require_equal(landed)


def test_copies_that_are_gone_are_fetched_again(uploading: OneLakeLab) -> None:
    """Checks may run on another machine than the one that staged."""
    context = uploading.context
    record = stage_next(context)
    shutil.rmtree(uploading.lab.root / "staging")
    judged, results = run_checks(context, record)
    require_passed(context, judged, results)
    assert [path.name for path in uploading.staged] == [part.name for part in record.parts]


def test_two_mirrors_of_one_folder_stage_at_once(uploading: OneLakeLab) -> None:
    """Seen: whoever published first deleted what the other had staged, for both staged in the same `./staging`."""
    other = uploading.server.new_item()
    file = uploading.lab.root / "other.yaml"
    file.write_text(uploading.lab.config_file.read_text().replace(uploading.item.url, other.url))
    config, store = load_config(file), loopback_store(uploading.server, other)
    local_staging = config.zone.local_staging()
    context = replace(uploading.context, config=config, store=store, local_staging=local_staging)
    record = stage_next(context)
    copies = uploading.staged
    uploading.mirror()
    assert uploading.staged == copies
    judged, results = run_checks(context, record)
    require_passed(context, judged, results)
    assert publish_slice(context, judged.slice).outcome is Outcome.LANDED
    assert uploading.staged == []
    names = [name for name in other.names(TABLE.folder) if not name.startswith("_")]
    assert names == uploading.folder == [landing_name(1)]


def test_a_part_that_changed_since_it_was_uploaded_is_refused(uploading: OneLakeLab) -> None:
    context = uploading.context
    record = stage_next(context)
    uploading.item.write(record.folder.part(record.parts[0].name), b"other")
    _, results = run_checks(context, record)
    assert next(one.check for one in results if one.problems) == "parts_unchanged"


def test_a_rebuild_begins_a_second_epoch(landed: OneLakeLab) -> None:
    landed.mirror()
    landed.replicator.poll()
    published = rebuild_table(landed.context, landed.replicator, lambda _: None)
    assert published.manifest.epoch == 2
    require_equal(landed)
