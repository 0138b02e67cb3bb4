"""The whole way into a landing zone on OneLake, through the real SDK and the real abfs driver."""

from __future__ import annotations

import shutil

import pytest

from mirror_assets.config import Staging
from mirror_assets.landing.names import PROCESSED, landing_name
from mirror_assets.mirroring.compare import reconcile_table
from mirror_assets.mirroring.judge import judge_slice, require_passed
from mirror_assets.mirroring.land import land_slice
from mirror_assets.mirroring.planning import plan_table
from mirror_assets.mirroring.rebuild import rebuild_table
from mirror_assets.mirroring.stage import stage_slice
from mirror_assets.verify.landed import file_continuity
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.lab import TABLE, Lab, wait_on
from mirror_assets_tests.onelake import LoopbackOneLake, Operation
from mirror_assets_tests.onelake.lab import OneLakeLab


@pytest.fixture(params=Staging)
def zone(request: pytest.FixtureRequest, lab: Lab, onelake: LoopbackOneLake) -> OneLakeLab:
    """The lab's table and an empty landing zone, for each way to stage."""
    return OneLakeLab.on(lab, onelake, request.param)


@pytest.fixture
def uploading(lab: Lab, onelake: LoopbackOneLake) -> OneLakeLab:
    """The same where parts are uploaded."""
    return OneLakeLab.on(lab, onelake, Staging.UPLOAD)


def require_equal(zone: OneLakeLab) -> None:
    """Fail unless the mirror equals its source once the stand-in has applied everything."""
    zone.replicator.poll()
    assert reconcile_table(zone.work, zone.replicator).state is ReconcileState.EQUAL


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
    work = uploading.work
    plan = plan_table(work)
    uploading.server.log.reset()
    staged = stage_slice(work, plan.slices[0], plan.footing)
    uploads = uploading.server.log.counts("*/parts/*")
    record, findings = judge_slice(work, staged)
    require_passed(work, record, findings)
    uploading.server.log.reset()
    land_slice(work, record.key)
    asked = uploading.server.log.counts()
    assert uploads[Operation.PUT_BLOB] == asked[Operation.RENAME] == len(record.parts) == 1
    assert sum(asked.values()) - 1 <= 20, asked


def test_a_file_that_somebody_rewrote_is_found(zone: OneLakeLab) -> None:
    zone.mirror()
    zone.lab.change()
    zone.mirror()
    path = TABLE.landing_file(2)
    data = bytearray(zone.item.read(path))
    data[40] ^= 1
    zone.item.write(path, bytes(data))
    finding = file_continuity(zone.store, TABLE, applied=0)
    assert finding.problems == (f"{path} does not have the content that was committed",)


def test_an_etag_that_a_rename_did_not_keep_is_no_damage(zone: OneLakeLab) -> None:
    zone.mirror()
    path = TABLE.landing_file(1)
    zone.item.write(path, zone.item.read(path))
    assert file_continuity(zone.store, TABLE, applied=0).passed
    zone.lab.change()
    zone.mirror()
    require_equal(zone)


def test_copies_that_are_gone_are_fetched_again(uploading: OneLakeLab) -> None:
    """Checks may run on another machine than the one that staged."""
    work = uploading.work
    plan = plan_table(work)
    record = stage_slice(work, plan.slices[0], plan.footing)
    shutil.rmtree(uploading.lab.root / "staging")
    judged, findings = judge_slice(work, record)
    require_passed(work, judged, findings)
    assert [path.name for path in uploading.staged] == [part.name for part in record.parts]


def test_a_part_that_changed_since_it_was_uploaded_is_refused(uploading: OneLakeLab) -> None:
    work = uploading.work
    plan = plan_table(work)
    record = stage_slice(work, plan.slices[0], plan.footing)
    uploading.item.write(record.folder.part(record.parts[0].name), b"other")
    _, findings = judge_slice(work, record)
    assert next(one.check for one in findings if one.problems) == "parts_unchanged"


def test_a_rebuild_begins_a_second_life(zone: OneLakeLab) -> None:
    zone.mirror()
    zone.replicator.poll()
    published = rebuild_table(zone.work, wait_on(zone.replicator), lambda _: None)
    assert published.manifest.life == 2
    require_equal(zone)
