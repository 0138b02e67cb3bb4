"""Stages the slices of a run one after another, each as the generation that follows the one before."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from mirror_assets.landing.errors import SliceMissing
from mirror_assets.landing.format import Manifest, SliceRecord
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.parts import best_attempt, staged_folders, staged_records, stands_on
from mirror_assets.landing.rebuild import first_life
from mirror_assets.landing.state import Footing, next_footing
from mirror_assets.landing.steps import drive
from mirror_assets.mirroring.before import Before
from mirror_assets.mirroring.carry import carry_slice
from mirror_assets.mirroring.land import require_loading
from mirror_assets.mirroring.planning import after_manifest, plan_key, plan_rest, plan_snapshot
from mirror_assets.mirroring.resume import resume_or_stage
from mirror_assets.mirroring.start import begins_with_snapshot
from mirror_assets.mirroring.work import TableWork
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.state import SourceState


def stage_keys(work: TableWork, keys: Sequence[SliceKey]) -> Iterator[SliceRecord | None]:
    """The record of each slice, staged now or by a run before; None for one that has nothing left to do.

    `keys` in order. Several slices are staged ahead of what has landed, each on the footing of the one before. Of a
    snapshot in chunks all land at once but the last, so that they take no room and stay if the run is killed. The
    source is looked at once: keys are of versions that it has. Raises
    SliceMissing when a slice before is neither landed nor staged in this run, SnapshotUnderWay for one of another
    version, and what planning, staging, checking and landing raise.
    """
    manifest = work.manifest()
    footing = next_footing(manifest, life=drive(first_life(work.name), work.store), incarnation=uuid.uuid4().hex)
    before, tip = _before(manifest), _Tip(work)
    for key in keys:
        if is_done(manifest, key) or key.last <= footing.covered:
            yield None
            continue
        if key.first > footing.covered + 1:
            raise SliceMissing(str(work.name), str(key), footing.covered + 1)
        require_loading(str(work.name), key, footing)
        if before is None and begins_with_snapshot(work, key.life):
            planned, footing = _all_but_the_last(work, key, footing)
        else:
            planned = plan_key(work, key, before, tip.state)
        record = resume_or_stage(work, planned, footing)
        footing = footing.behind(record)
        before = Before.staged(record, before)
        yield record


@dataclass(frozen=True)
class _Tip:
    """The source's newest version, looked at when it is first asked for, and then once."""

    work: TableWork

    @cached_property
    def state(self) -> SourceState:
        return self.work.log.state()


def _before(manifest: Manifest | None) -> Before | None:
    if manifest is None or manifest.loading is not None:
        return None
    return Before.landed(manifest)


def _all_but_the_last(work: TableWork, key: SliceKey, footing: Footing) -> tuple[PlannedSlice, Footing]:
    """The last chunk of the snapshot, or the whole of a small one, and its footing, when the others have landed."""
    manifest = work.manifest()
    if manifest is not None and manifest.loading is not None:
        planned = plan_rest(work, manifest)
    else:
        planned, _ = plan_snapshot(work, key.life, key.last)
    *chunks, last = planned
    for chunk in chunks:
        footing = after_manifest(carry_slice(work, chunk).published.manifest)
    return last, footing


def is_done(manifest: Manifest | None, key: SliceKey) -> bool:
    """Whether the slice is of an earlier life, or covered by what has landed."""
    return manifest is not None and (key.life < manifest.life or key.last <= manifest.covered)


def staged_ahead(work: TableWork) -> tuple[SliceRecord, ...]:
    """The staged slices that could be committed next, one after another."""
    manifest = work.manifest()
    footing = next_footing(manifest, life=drive(first_life(work.name), work.store), incarnation="")
    chain: list[SliceRecord] = []
    folders = staged_folders(work.store, work.name)
    for generation, attempts in groupby(folders, lambda folder: folder.generation):
        if generation < footing.generation:
            continue  # it has landed, and nobody has cleared it away yet
        fitting = [record for record in staged_records(work.store, attempts) if stands_on(record, footing)]
        if not fitting:
            break
        chain.append(best_attempt(fitting))
        footing = footing.behind(chain[-1])
    return tuple(chain)
