"""Stages the slices of a run one after another, each as the generation that follows the one before."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from mirror_assets.landing.errors import SliceMissing
from mirror_assets.landing.format import Manifest, SliceRecord
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.parts import best_attempt, staged_slices, stands_on
from mirror_assets.landing.rebuild import first_life
from mirror_assets.landing.state import next_footing
from mirror_assets.landing.steps import drive
from mirror_assets.mirroring.before import Before
from mirror_assets.mirroring.planning import plan_key
from mirror_assets.mirroring.stage import stage_slice
from mirror_assets.mirroring.work import TableWork


def stage_keys(work: TableWork, keys: Sequence[SliceKey]) -> Iterator[SliceRecord | None]:
    """The record of each slice, staged; None for one that has nothing left to do.

    `keys` in order. Several slices are staged ahead of what has landed, each on the footing of the one before. Raises
    SliceMissing when a slice before is neither landed nor staged in this run, and what planning and staging raise.
    """
    manifest = work.manifest()
    footing = next_footing(manifest, life=drive(first_life(work.name), work.store), incarnation=uuid.uuid4().hex)
    before = Before.landed(manifest) if manifest else None
    for key in keys:
        if is_done(manifest, key) or key.last <= footing.covered:
            yield None
            continue
        if key.first > footing.covered + 1:
            raise SliceMissing(str(work.name), str(key), footing.covered + 1)
        record = stage_slice(work, plan_key(work, key, before), footing)
        footing = footing.after(covered=key.last, files=len(record.parts))
        before = Before.staged(record, before)
        yield record


def is_done(manifest: Manifest | None, key: SliceKey) -> bool:
    """Whether the slice is of an earlier life, or covered by what has landed."""
    return manifest is not None and (key.life < manifest.life or key.last <= manifest.covered)


def staged_ahead(work: TableWork) -> tuple[SliceRecord, ...]:
    """The staged slices that could be committed next, one after another."""
    manifest = work.manifest()
    footing = next_footing(manifest, life=drive(first_life(work.name), work.store), incarnation="")
    chain: list[SliceRecord] = []
    for _, attempts in groupby(staged_slices(work.store, work.name), lambda record: record.generation):
        fitting = [record for record in attempts if stands_on(record, footing)]
        if fitting:
            best = best_attempt(fitting)
            chain.append(best)
            footing = replace(footing, incarnation=best.incarnation).after(covered=best.key.last, files=len(best.parts))
    return tuple(chain)
