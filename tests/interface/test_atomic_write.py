import os
import re
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from certree.interface.atomic_write import write_atomically


def names(directory):
    return sorted(file.name for file in directory.iterdir())


def test_a_new_file_holds_what_was_written(tmp_path):
    write_atomically(tmp_path / "new", lambda file: file.write(b"content"))
    assert (tmp_path / "new").read_bytes() == b"content"
    assert names(tmp_path) == ["new"]


def test_an_old_file_is_replaced(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"a longer old content")
    write_atomically(str(path), lambda file: file.write(b"new"))
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

    write_atomically(path, write)
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
        write_atomically(path, write)
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
        write_atomically(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_a_directory_in_the_way_is_left_alone(tmp_path):
    (tmp_path / "place").mkdir()
    with pytest.raises(OSError, match="place"):
        write_atomically(tmp_path / "place", lambda file: file.write(b"new"))
    assert names(tmp_path) == ["place"]


def test_a_missing_directory_is_an_error_before_anything_is_written(tmp_path):
    written = []
    with pytest.raises(FileNotFoundError, match=r"missing must exist to write file: create"):
        write_atomically(tmp_path / "missing" / "file", written.append)
    assert written == []


POSIX = pytest.mark.skipif(os.name != "posix", reason="modes, links and pipes are POSIX's")


@POSIX
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_the_mode_is_that_of_a_newly_made_file(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "ours", lambda file: file.write(b""))
        (tmp_path / "plain").write_bytes(b"")
    finally:
        os.umask(before)
    modes = {mode_of(tmp_path / name) for name in ("ours", "plain")}
    assert modes == {0o666 & ~umask}


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@POSIX
def test_the_umask_of_the_process_is_never_touched(tmp_path, monkeypatch):
    # All threads have the same one: a file that another one makes meanwhile would be open to all.
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("the umask was set"))
    write_atomically(tmp_path / "file", lambda file: file.write(b"new"))


@POSIX
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o777])
def test_a_replaced_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_atomically(path, lambda file: file.write(b"new"))
    assert (path.read_bytes(), mode_of(path)) == (b"new", mode)


@POSIX
def test_nobody_else_reads_a_private_file_while_it_is_written(tmp_path):
    path, seen = tmp_path / "file", []
    path.write_bytes(b"old")
    path.chmod(0o600)
    write_atomically(path, lambda _: seen.extend(map(mode_of, tmp_path.iterdir())))
    assert seen == [0o600, 0o600]


@POSIX
def test_a_replaced_file_keeps_its_owner_where_that_is_permitted(tmp_path, monkeypatch):
    path, given = tmp_path / "file", []
    path.write_bytes(b"old")
    path.chmod(0o660)
    monkeypatch.setattr(os, "chown", lambda _, *owner: given.append(owner))
    write_atomically(path, lambda file: file.write(b"new"))
    assert given == [(path.stat().st_uid, path.stat().st_gid)]
    assert mode_of(path) == 0o660

    def refuse(*_):
        raise PermissionError("not yours")

    monkeypatch.setattr(os, "chown", refuse)
    write_atomically(path, lambda file: file.write(b"newer"))
    # The group is another one then, which was permitted nothing.
    assert (path.read_bytes(), mode_of(path)) == (b"newer", 0o600)


@POSIX
@pytest.mark.parametrize("there", [True, False], ids=["whole", "dangling"])
def test_a_link_stays_a_link_and_its_target_is_written(tmp_path, there):
    (tmp_path / "store").mkdir()
    target, link = tmp_path / "store" / "target", tmp_path / "link"
    if there:
        target.write_bytes(b"old")
    link.symlink_to(Path("store") / "target")
    write_atomically(link, lambda file: file.write(b"new"))
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert (names(tmp_path), names(target.parent)) == (["link", "store"], ["target"])


@POSIX
def test_a_pipe_is_written_once_all_is_there_and_stays_a_pipe(tmp_path):
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write_atomically(path, lambda file: file.write(b"one") + file.seek(0) + file.write(b"two"))
    reader.join()
    assert read == [b"two"]
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert names(tmp_path) == ["pipe"]


@POSIX
def test_a_device_stays_a_device(tmp_path):
    link = tmp_path / "nothing"
    link.symlink_to(os.devnull)
    write_atomically(link, lambda file: file.write(b"gone"))
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert names(tmp_path) == ["nothing"]


@POSIX
def test_standard_output_is_written_as_a_pipe_is():
    code = "write_atomically('/dev/stdout', lambda file: file.write(b'content'))"
    assert run(code, check=True).stdout == b"content"


def run(code, check=False):
    program = (
        f"from certree.interface.atomic_write import write_atomically; import os, signal; {code}"
    )
    return subprocess.run([sys.executable, "-c", program], check=check, capture_output=True)


@POSIX
def test_a_killed_process_leaves_the_old_file_and_says_whose_the_rest_is(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    kill = "file.write(b'half'), file.flush(), os.kill(os.getpid(), signal.SIGKILL)"
    done = run(f"write_atomically({str(path)!r}, lambda file: ({kill}))")
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    rest, _ = names(tmp_path)
    assert re.fullmatch(r"\.certree-[0-9a-f]{8}\.tmp", rest)
    write_atomically(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"


def test_names_may_have_all_letters_that_a_name_can_have(tmp_path):
    path = tmp_path / ("n" * 255)
    write_atomically(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"


def test_a_relative_path_is_written_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_atomically("file", lambda file: file.write(b"here"))
    assert (tmp_path / "file").read_bytes() == b"here"
