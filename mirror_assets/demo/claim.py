"""What the demo may delete when it begins anew: only what it marked as its own before it wrote anything there."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mirror_assets.demo.errors import NotMadeHere
from mirror_assets.landing.names import TableName
from mirror_assets.storage import PathExists, Store

MARK = ".made_by_mirror_assets_demo"
# In a landing zone the mark begins with an underscore, so that Fabric ignores it.
ZONE_MARK = "_made_by_mirror_assets_demo"


def claim_folder(folder: Path) -> None:
    """Mark a folder as the demo's, and make it if need be. Raises NotMadeHere when it has content but no mark."""
    mark = folder / MARK
    if not mark.exists() and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise NotMadeHere(folder)
    folder.mkdir(parents=True, exist_ok=True)
    mark.touch()


def clear_folder(folder: Path) -> None:
    """Delete all that is in the demo's folder but the mark. Raises NotMadeHere when it is not the demo's."""
    claim_folder(folder)
    for path in folder.iterdir():
        if path.name != MARK:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def claim_tables(store: Store, names: Sequence[TableName]) -> None:
    """Mark the landing zone's tables of these names as the demo's; others may lie beside them.

    Raises NotMadeHere when one of them is there without the mark, and what the store raises.
    """
    if store.head(ZONE_MARK) is not None:
        return
    for name in names:
        for folder in (name.folder, name.scratch):
            if store.list(folder):
                raise NotMadeHere(f"{store.root}/{folder}")
        if store.head(name.rebuild_record) is not None:
            raise NotMadeHere(f"{store.root}/{name.rebuild_record}")
    with suppress(PathExists):
        store.create(ZONE_MARK, b"")


def clear_tables(store: Store, names: Sequence[TableName]) -> None:
    """Delete the demo's tables from the landing zone. Raises as `claim_tables` does."""
    claim_tables(store, names)
    for name in names:
        store.delete_tree(name.folder)
        store.delete_tree(name.scratch)
        store.delete(name.rebuild_record)
