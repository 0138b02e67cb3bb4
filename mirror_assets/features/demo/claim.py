"""The demo's own files: the mirror.yaml that it writes, and what it may delete when it starts again."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from mirror_assets.config.model import Config
from mirror_assets.features.demo.errors import NOT_MADE_HERE
from mirror_assets.landing.names import TableName
from mirror_assets.zones import PathExists, Store

MARK = ".made_by_mirror_assets_demo"
# In a landing zone the mark begins with an underscore, so that Fabric ignores it.
ZONE_MARK = "_made_by_mirror_assets_demo"
CONFIG = "mirror.yaml"


def claim_folder(folder: Path) -> None:
    """Mark a folder as the demo's; make it if need be. Raises NOT_MADE_HERE for one with content and no mark."""
    mark = folder / MARK
    if not mark.exists() and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise NOT_MADE_HERE(path=folder)
    folder.mkdir(parents=True, exist_ok=True)
    mark.touch()


def clear_folder(folder: Path) -> None:
    """Delete all that is in the demo's folder but the mark. Raises NOT_MADE_HERE when it is not the demo's."""
    claim_folder(folder)
    for path in folder.iterdir():
        if path.name != MARK:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def claim_tables(store: Store, names: Sequence[TableName]) -> None:
    """Mark the landing zone's tables of these names as the demo's; other tables may be beside them.

    Raises NOT_MADE_HERE when one of them is there without the mark, and what the store raises.
    """
    if store.head(ZONE_MARK) is not None:
        return
    for name in names:
        for folder in (name.folder, name.scratch):
            if store.list(folder):
                raise NOT_MADE_HERE(path=f"{store.root}/{folder}")
        if store.head(name.rebuild_record) is not None:
            raise NOT_MADE_HERE(path=f"{store.root}/{name.rebuild_record}")
    with suppress(PathExists):
        store.create(ZONE_MARK, b"")


def clear_tables(store: Store, names: Sequence[TableName]) -> None:
    """Delete the demo's tables from the landing zone. Raises as `claim_tables` does."""
    claim_tables(store, names)
    for name in names:
        store.delete_tree(name.folder)
        store.delete_tree(name.scratch)
        store.delete(name.rebuild_record)


def claim(config: Config) -> None:
    """Raise NOT_MADE_HERE, before anything is built, if files that the demo did not create would be deleted."""
    claim_tables(config.zone.open(), config.names)
    if config.mirror_place is None:
        claim_folder(config.mirror.path)


def clear(config: Config) -> None:
    """Delete the landing zone and the mirror of an earlier demo; its lake is built again."""
    clear_tables(config.zone.open(), config.names)
    if config.mirror_place is None:
        clear_folder(config.mirror.path)


def write_config(root: Path, others: Path | None = None) -> Path:
    """Write `root/mirror.yaml` and return its path; settings in the file `others` replace the demo's.

    Raises NOT_MADE_HERE for a mirror.yaml that the demo did not write.
    """
    text = (files("mirror_assets.features.demo") / CONFIG).read_text(encoding="utf-8")
    first_line = text.partition("\n")[0]
    if others is not None:
        replaced = others.read_text(encoding="utf-8")
        names = tuple(f"{line.partition(':')[0]}:" for line in replaced.splitlines() if line[:1].isalpha())
        text = "\n".join([*(line for line in text.splitlines() if not line.startswith(names)), replaced])
    path = root / CONFIG
    if path.exists() and not path.read_text(encoding="utf-8").startswith(first_line):
        raise NOT_MADE_HERE(path=path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
