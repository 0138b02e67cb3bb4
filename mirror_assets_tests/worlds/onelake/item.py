"""An item of the server as a test looks at it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mirror_assets.landing.names import landing_number
from mirror_assets_tests.worlds.onelake.account import LANDING_ZONE, File, Folder, Item, Node, Workspace
from mirror_assets_tests.worlds.onelake.storage import Storage


class LoopbackItem:
    """A mirrored database. Paths are relative to its landing zone, and no request is made for them."""

    def __init__(self, storage: Storage, base: str, workspace: Workspace, item: Item) -> None:
        self._storage, self._base, self._workspace, self._item = storage, base, workspace, item

    @property
    def workspace(self) -> str:
        return self._workspace.guid

    @property
    def guid(self) -> str:
        return self._item.guid

    @property
    def url(self) -> str:
        """The landing zone's URL, as Fabric's portal shows it."""
        return f"{self._base}/{self.workspace}/{self.guid}/{LANDING_ZONE}"

    def read(self, path: str) -> bytes:
        """The file's content. Raises FileNotFoundError."""
        found = self._item.tree.get(_at(path))
        if not isinstance(found, File):
            raise FileNotFoundError(path)
        return found.data

    def write(self, path: str, data: bytes) -> None:
        """Write the file as somebody else would: unconditionally, with a new ETag."""
        with self._storage.lock:
            found = self._item.tree.get(_at(path))
            file = found if isinstance(found, File) else File()
            self._item.tree.put(_at(path), file.with_data(data))

    def make_folder(self, path: str) -> None:
        with self._storage.lock:
            self._item.tree.put(_at(path), Folder())

    def move(self, source: str, target: str) -> None:
        """Give a file or folder another path, as the replicator does with what it has applied."""
        with self._storage.lock:
            self._item.tree.put(_at(target), Folder())
            self._item.tree.remove(_at(target))
            self._item.tree.move(_at(source), _at(target))

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with all that is in it. Raises KeyError when there is none."""
        with self._storage.lock:
            self._item.tree.remove(_at(path))

    def put_tables(self, files: Mapping[str, bytes]) -> None:
        """Make these the files of the mirrored tables, all at once; a file that has its content already is kept."""
        with self._storage.lock:
            tree, wanted = self._item.tree, {f"Tables/{path}": data for path, data in files.items()}
            for path in [path for path in tree.below("Tables") if isinstance(tree.get(path), File)]:
                if path not in wanted:
                    tree.remove(path)
            for path, data in wanted.items():
                found = tree.get(path)
                if found is None or found.data != data:
                    tree.put(path, File(data))

    def saved(self) -> Mapping[str, Node]:
        with self._storage.lock:
            return self._item.tree.nodes()

    def restore(self, saved: Mapping[str, Node]) -> None:
        """Make the item what it was when it was saved, ETags and all."""
        with self._storage.lock:
            self._item.tree.reset(saved)

    def names(self, folder: str = "") -> list[str]:
        """The names of what is directly in the folder, sorted; folders end with a slash."""
        with self._storage.lock:
            tree, paths = self._item.tree, self._item.tree.children(_at(folder))
            return [_name(path) + ("/" if isinstance(tree.get(path), Folder) else "") for path in paths]

    def landing_files(self, folders: Iterable[str]) -> Iterator[tuple[int, bytes]]:
        """The number and the content of each landing file in these folders."""
        for folder in folders:
            for name in self.names(folder):
                if number := landing_number(name):
                    yield number, self.read(f"{folder}/{name}")

    def paths(self) -> list[str]:
        """The paths of all files in the landing zone, sorted."""
        with self._storage.lock:
            tree, prefix = self._item.tree, f"{LANDING_ZONE}/"
            return [p.removeprefix(prefix) for p in tree.below(LANDING_ZONE) if isinstance(tree.get(p), File)]


def _at(path: str) -> str:
    return f"{LANDING_ZONE}/{path}" if path else LANDING_ZONE


def _name(path: str) -> str:
    return path.rpartition("/")[2]
