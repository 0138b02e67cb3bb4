"""The framing effect between two versions: what is the same isn't loaded again (reference `direct-lake` §3.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mirror_assets.direct_lake.framing.values import FileSum, FramingEffect, sum_of
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.replay import Snapshot

FileChange = tuple[LiveFile | None, LiveFile | None]


def framing_effect(first: Snapshot, last: Snapshot) -> FramingEffect:
    """What a model framed at the one version keeps and loads when it is framed at the other; either may be newer."""
    before = {file.path: file for file in first.files}
    after = {file.path: file for file in last.files}
    changes: list[FileChange] = [(before.get(path), file) for path, file in after.items()]
    changes += [(file, None) for path, file in before.items() if path not in after]
    return effect_of(FramingEffect(first.version, last.version), changes)


def effect_of(effect: FramingEffect, changes: Iterable[FileChange]) -> FramingEffect:
    """The effect with these files added to it, each as it was and as it is; None: not there."""
    kept, changed, reloaded, dropped = effect.kept, effect.changed, effect.reloaded, effect.dropped
    vector_bytes = effect.vector_bytes
    for before, after in changes:
        if after is None:
            dropped += FileSum() if before is None else sum_of(before)
        elif before is not None and before.vector == after.vector:
            kept += sum_of(after)
        else:
            vector_bytes += 0 if after.vector is None else after.vector.bytes
            if before is None:
                reloaded += sum_of(after)
            else:
                changed += sum_of(after)
    return replace(effect, kept=kept, changed=changed, reloaded=reloaded, dropped=dropped, vector_bytes=vector_bytes)
