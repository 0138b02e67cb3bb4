"""The contract of Store, for every store."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from mirror_assets.errors import MirrorError, RetryError
from mirror_assets.zones import Content, FileInfo, PathChanged, PathExists, PathMissing, Store
from mirror_assets.zones.errors import PATH_REFUSED, FileTooLarge
from mirror_assets_tests.errors import raises_row

LIMIT = 1 << 20


def content(store: Store, path: str) -> bytes:
    return store.read(path, LIMIT).data


def names(store: Store, folder: str) -> list[str]:
    """What is in the folder, without a store's own underscore files."""
    return [info.name for info in store.list(folder) if not info.name.startswith("_")]


def test_created_file_is_read_back_whole_with_its_etag(store: Store) -> None:
    etag = store.create("a/b/file", b"\x00data\n")
    assert store.read("a/b/file", LIMIT) == Content(b"\x00data\n", etag)
    assert store.head("a/b/file") == FileInfo("a/b/file", 6, etag)


def test_a_file_is_read_again_only_if_it_has_changed(store: Store) -> None:
    first = store.create("a/file", b"one")
    assert store.read_if_changed("a/file", first, LIMIT) is None
    second = store.replace("a/file", b"two", first)
    assert store.read_if_changed("a/file", first, LIMIT) == Content(b"two", second)
    assert store.read_if_changed("a/file", second, LIMIT) is None
    store.delete("a/file")
    for path in ("a/file", "a", "none/file"):
        with pytest.raises(PathMissing):
            store.read_if_changed(path, second, LIMIT)


def test_a_changed_file_that_is_too_large_is_not_read(store: Store) -> None:
    first = store.create("a/file", b"one")
    assert store.read_if_changed("a/file", first, 2) is None
    with pytest.raises(FileTooLarge):
        store.read_if_changed("a/file", "another", 2)


def test_create_refuses_a_taken_path_and_leaves_it_alone(store: Store) -> None:
    etag = store.create("a/file", b"first")
    with pytest.raises(PathExists) as refused:
        store.create("a/file", b"second")
    assert refused.value.facts["path"] == "a/file"
    assert store.read("a/file", LIMIT) == Content(b"first", etag)


def test_create_refuses_the_path_of_a_folder_or_below_a_file(store: Store) -> None:
    store.create("a/b/file", b"x")
    for path in ("a/b", "a/b/file/deeper"):
        with pytest.raises(PathExists):
            store.create(path, b"y")
    assert content(store, "a/b/file") == b"x"


def test_replace_with_a_spent_etag_changes_nothing(store: Store) -> None:
    first = store.create("a/file", b"one")
    second = store.replace("a/file", b"two", first)
    with pytest.raises(PathChanged) as refused:
        store.replace("a/file", b"three", first)
    assert (refused.value.facts["path"], refused.value.facts["wanted"], refused.value.facts["found"]) == (
        "a/file",
        first,
        second,
    )
    assert store.read("a/file", LIMIT) == Content(b"two", second)


@pytest.mark.parametrize("path", ["a/other", "none/file"])
def test_replace_of_a_missing_file_makes_none(store: Store, path: str) -> None:
    etag = store.create("a/file", b"one")
    with pytest.raises(PathMissing):
        store.replace(path, b"two", etag)
    assert names(store, "a") == ["file"]
    assert store.folder_identity("none") is None


def test_every_rewrite_has_an_etag_of_its_own_even_with_the_same_bytes(store: Store) -> None:
    etags = [store.create("a/file", b"same")]
    for _ in range(30):
        etags.append(store.replace("a/file", b"same", etags[-1]))
    assert len(set(etags)) == 31


def test_a_file_created_again_has_another_etag(store: Store) -> None:
    first = store.create("a/file", b"same")
    store.delete("a/file")
    assert store.create("a/file", b"same") != first


def test_rename_moves_the_content_and_keeps_the_etag(store: Store) -> None:
    store.create("b/other", b"")
    etag = store.create("a/file", b"data")
    store.rename("a/file", "b/file", etag)
    assert store.head("a/file") is None
    assert store.read("b/file", LIMIT) == Content(b"data", etag)
    assert store.head("b/file") == FileInfo("b/file", 4, etag)


@pytest.mark.parametrize(
    ("source", "target", "etag", "error"),
    [
        ("a/file", "a/taken", "newest", PathExists),
        ("a/file", "a/file", "newest", PathExists),
        ("a/file", "a/free", "spent", PathChanged),
        ("a/gone", "a/moved", "moved", PathMissing),
        ("a/file", "none/file", "newest", PathMissing),
    ],
    ids=["a taken target", "itself", "another content than meant", "a second time", "a folder that does not exist"],
)
def test_rename_is_refused_and_changes_nothing(
    store: Store, source: str, target: str, etag: str, error: type[MirrorError]
) -> None:
    spent = store.create("a/file", b"one")
    etags = {"spent": spent, "newest": store.replace("a/file", b"two", spent), "moved": store.create("a/gone", b"x")}
    store.create("a/taken", b"theirs")
    store.rename("a/gone", "a/moved", etags["moved"])
    before = store.list("a")
    with pytest.raises(error) as refused:
        store.rename(source, target, etags[etag])
    assert refused.value.facts["path"] == (target if error is PathExists or "none" in target else source)
    assert store.list("a") == before
    assert content(store, "a/file") == b"two"
    assert store.folder_identity("none") is None


def test_missing_paths_are_answered_not_guessed(store: Store) -> None:
    store.create("a/file", b"one")
    for path in ("a/none", "none", "a/file/deeper", "a"):
        assert store.head(path) is None, path
        for ask in (lambda path=path: store.read(path, LIMIT), lambda path=path: store.open(path)):
            with pytest.raises(PathMissing):
                ask()


def test_read_refuses_a_file_over_the_limit(store: Store) -> None:
    store.create("a/file", b"12345")
    assert store.read("a/file", 5).data == b"12345"
    with pytest.raises(FileTooLarge) as refused:
        store.read("a/file", 4)
    assert (refused.value.size, refused.value.facts["limit"]) == (5, 4)


def test_list_returns_the_files_and_folders_of_one_folder_by_name(store: Store) -> None:
    etags = {path: store.create(path, b"x" * size) for size, path in enumerate(("z", "m/b", "m/a", "m/deep/c", "mm/d"))}
    assert store.list("m") == [
        FileInfo("m/a", 2, etags["m/a"]),
        FileInfo("m/b", 1, etags["m/b"]),
        FileInfo("m/deep", 0, "", is_folder=True),
    ]
    assert [(info.path, info.is_folder) for info in store.list("")] == [("m", True), ("mm", True), ("z", False)]


def test_list_of_nothing_is_empty(store: Store) -> None:
    assert store.list("") == []
    store.create("a/file", b"x")
    assert store.list("none") == []
    assert store.list("a/file") == []


def test_delete_takes_one_file_and_a_missing_one_is_fine(store: Store) -> None:
    store.create("a/file", b"x")
    store.create("a/other", b"x")
    store.delete("a/file")
    store.delete("a/file")
    store.delete("none/file")
    assert names(store, "a") == ["other"]


def test_delete_tree_takes_all_of_one_folder_and_nothing_beside(store: Store) -> None:
    for path in ("a/x/1", "a/x/deep/2", "a/xy/3", "a/4"):
        store.create(path, b"x")
    store.delete_tree("a/x")
    store.delete_tree("a/x")
    assert names(store, "a") == ["4", "xy"]
    assert store.folder_identity("a/x") is None
    assert store.head("a/x/deep/2") is None


def test_the_root_can_not_be_deleted(store: Store) -> None:
    store.create("a/file", b"x")
    with raises_row(PATH_REFUSED):
        store.delete_tree("")
    assert content(store, "a/file") == b"x"


def test_fsync_returns_size_and_etag_of_a_listed_file(store: Store) -> None:
    etag = store.create("a/file", b"12345")
    (listed,) = store.list("a")
    assert store.fsync(listed) == FileInfo("a/file", 5, etag)


@pytest.mark.parametrize("size", [0, 5, (8 << 20) + 1, (16 << 20) + 7])
def test_upload_copies_a_file_to_a_free_path(store: Store, tmp_path: Path, size: int) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(range(256)) * (size // 256) + b"x" * (size % 256))
    info = store.upload(source, "new/folder/part")
    assert info == store.head("new/folder/part")
    assert info.size == size
    with store.open("new/folder/part") as file:
        assert file.read() == source.read_bytes()
    with pytest.raises(PathExists):
        store.upload(source, "new/folder/part")


def test_make_folder_makes_one_inside_another(store: Store) -> None:
    store.create("a/file", b"x")
    for _ in range(2):
        store.make_folder("a/new")
    identity = store.folder_identity("a/new")
    assert identity is not None
    etag = store.create("a/other", b"y")
    store.rename("a/other", "a/new/other", etag)
    assert store.folder_identity("a/new") == identity


def test_a_stream_seeks_like_a_file(store: Store) -> None:
    data = bytes(range(256)) * 8_000
    store.create("a/file", data)
    with store.open("a/file") as file:
        assert file.seek(-5, 2) == len(data) - 5
        assert file.read(100) == data[-5:]
        assert file.read(1) == b""
        file.seek(1_500_000)
        assert file.read(300_000) == data[1_500_000:1_800_000]
        assert file.tell() == 1_800_000
        file.seek(3)
        assert file.read(4) == data[3:7]
        assert file.read() == data[7:]


def test_folder_identity_is_kept_while_the_folder_lives(store: Store) -> None:
    assert store.folder_identity("a") is None
    etag = store.create("a/file", b"x")
    identity = store.folder_identity("a")
    store.replace("a/file", b"y", etag)
    store.create("a/deep/other", b"x")
    store.delete("a/file")
    assert identity is not None
    assert store.folder_identity("a") == identity


def test_folder_identity_differs_for_a_folder_made_again(store: Store) -> None:
    seen = set()
    for _ in range(5):
        store.create("a/file", b"x")
        seen.add(store.folder_identity("a"))
        store.delete_tree("a")
    assert len(seen) == 5


@pytest.mark.parametrize("path", ["../a", "/a", "a//b", "a\\b", "a\nb", "a/.", ""])
def test_every_method_refuses_paths_that_leave_the_root(store: Store, path: str) -> None:
    etag = store.create("a/file", b"x")
    asks = (
        lambda: store.head(path),
        lambda: store.read(path, LIMIT),
        lambda: store.open(path),
        lambda: store.create(path, b""),
        lambda: store.replace(path, b"", etag),
        lambda: store.rename(path, "a/target", etag),
        lambda: store.rename("a/file", path, etag),
        lambda: store.delete(path),
        lambda: store.delete_tree(path),
        lambda: store.fsync(FileInfo(path, 0, "")),
        lambda: store.upload(Path(__file__), path),
        lambda: store.make_folder(path),
        lambda: store.local_path(path),
        lambda: store.spark_path(path),
        lambda: store.folder_identity(path),
    )
    for ask in asks:
        with raises_row(PATH_REFUSED):
            ask()
    if path:
        with raises_row(PATH_REFUSED):
            store.list(path)
    assert content(store, "a/file") == b"x"


def test_delete_tree_of_one_folder_leaves_another_that_was_made_in_its_place(store: Store) -> None:
    store.create("a/file", b"x")
    first = store.folder_identity("a")
    store.delete_tree("a")
    store.create("a/file", b"y")
    with suppress(RetryError):  # OneLake can't distinguish two folders that were made in one second
        store.delete_tree("a", first)
    assert content(store, "a/file") == b"y"
    store.delete_tree("a", store.folder_identity("a"))
    assert store.list("a") == []
    store.delete_tree("a", first)


def test_delete_tree_of_one_folder_takes_what_came_into_it(store: Store) -> None:
    store.create("a/file", b"x")
    identity = store.folder_identity("a")
    store.create("a/deep/other", b"y")
    store.delete_tree("a", identity)
    assert store.folder_identity("a") is None
