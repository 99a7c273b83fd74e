import os
import stat

import pytest

from certree.files.whole import write_whole


def names(directory):
    return sorted(file.name for file in directory.iterdir())


def test_a_new_file_holds_what_was_written(tmp_path):
    write_whole(tmp_path / "new", lambda file: file.write(b"content"))
    assert (tmp_path / "new").read_bytes() == b"content"
    assert names(tmp_path) == ["new"]


def test_an_old_file_is_replaced(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"a longer old content")
    write_whole(str(path), lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


def test_the_old_file_stays_until_the_new_one_is_complete(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    seen = []

    def write(file):
        file.write(b"half")
        file.flush()
        seen.append(path.read_bytes())
        file.write(b" and half")

    write_whole(path, write)
    assert seen == [b"old"]
    assert path.read_bytes() == b"half and half"


@pytest.mark.parametrize("old", [None, b"old"], ids=["new", "replaced"])
@pytest.mark.parametrize(
    "error", [ValueError("bad"), OSError(28, "No space left"), KeyboardInterrupt(), SystemExit(3)]
)
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, old, error):
    path = tmp_path / "file"
    if old is not None:
        path.write_bytes(old)

    def write(file):
        file.write(b"half")
        file.flush()
        raise error

    with pytest.raises(type(error)) as raised:
        write_whole(path, write)
    assert raised.value is error
    assert names(tmp_path) == ([] if old is None else ["file"])
    if old is not None:
        assert path.read_bytes() == old


def test_a_failing_move_leaves_nothing_behind(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def replace(*_):
        raise PermissionError("not today")

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(PermissionError, match="not today"):
        write_whole(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_a_directory_in_the_way_is_left_alone(tmp_path):
    (tmp_path / "place").mkdir()
    with pytest.raises(OSError, match="place"):
        write_whole(tmp_path / "place", lambda file: file.write(b"new"))
    assert names(tmp_path) == ["place"]


def test_a_missing_directory_is_an_error_before_anything_is_written(tmp_path):
    written = []
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "missing" / "file", written.append)
    assert written == []


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_the_mode_is_that_of_a_newly_made_file(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "ours", lambda file: file.write(b""))
        (tmp_path / "plain").write_bytes(b"")
        assert os.umask(umask) == umask  # write_whole has put it back
    finally:
        os.umask(before)
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ours", "plain")}
    assert modes == {0o666 & ~umask}


def test_a_relative_path_is_written_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_whole("file", lambda file: file.write(b"here"))
    assert (tmp_path / "file").read_bytes() == b"here"
