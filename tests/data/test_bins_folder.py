"""Folders of bins: whole or not at all, damaged ones refused, views and copies."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.data import binned_part, bins_folder
from rankgrove.data.binned_dataset import BinnedDataset
from rankgrove.data.bins_folder import (
    HEADER,
    check_files,
    draft_folder,
    remove_leftovers,
    scratch_folder,
)
from rankgrove.data.folder_lock import folder_lock


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bins")
    rg.write_letor(rg.make_web(30, n_docs=20, seed=1), folder / "a.txt")
    return rg.read_letor(folder / "a.txt"), rg.open_binned(folder / "a.txt")


def copied(made, tmp_path):
    folder = tmp_path / "copy.bins"
    folder.mkdir()
    for path in made[1].folder.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_bins_are_used_again_until_something_changes(tmp_path, caplog):
    path, told = tmp_path / "a.txt", []
    data = rg.make_web(10, n_docs=20, seed=1)
    rg.write_letor(data, path)
    for options in ({}, {}, {"max_bins": 63}, {"max_bins": 63, "absent": "missing"}):
        rg.open_binned(path, say=told.append, **options)
    rg.write_letor(data.select(range(9)), path)
    assert rg.open_binned(path, say=told.append, max_bins=63, absent="missing").n_queries == 9
    sayings = [sentence.partition(": ")[2] for sentence in told]
    assert sayings == [
        "making bins ...",
        "the bins that were made before are used.",
        "making bins again (they were made with other options) ...",
        "making bins again (they were made with other options) ...",
        f"making bins again ({path} was changed) ...",
    ]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "a.txt.bins"]


@pytest.mark.parametrize("name", ["codes.bin", "columns.bin", "y.npy", "bins_thresholds.npy"])
def test_damaged_files_are_refused(made, tmp_path, name):
    folder = copied(made, tmp_path)
    whole = (folder / name).read_bytes()
    for blob in (whole[:-1], whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]):
        (folder / name).write_bytes(blob)
        with pytest.raises(rg.DataError, match=rf"copy.bins is damaged: .*{name}.*Remove it"):
            rg.open_binned(folder)
    (folder / name).unlink()
    with pytest.raises(rg.DataError, match=f"damaged: {name} is missing"):
        rg.open_binned(folder)


def test_a_damaged_header_is_refused(made, tmp_path):
    folder = copied(made, tmp_path)
    whole = (folder / HEADER).read_bytes()
    for at in range(0, len(whole) - 1, 97):
        (folder / HEADER).write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(rg.DataError, match="damaged"):
            rg.open_binned(folder)


def test_bins_of_another_version_are_made_again(tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO", logger="rankgrove")
    rg.write_letor(rg.make_web(10, n_docs=10, seed=1), tmp_path / "a.txt")
    with monkeypatch.context() as patch:
        patch.setattr(bins_folder, "FORMAT", 1)
        old = rg.open_binned(tmp_path / "a.txt")
    with pytest.raises(rg.DataError, match="format 1 of another version"):
        rg.open_binned(old.folder)
    assert rg.open_binned(tmp_path / "a.txt").n_rows == old.n_rows
    assert "made by another version" in caplog.text
    rg.open_binned(old.folder)


def crafted(folder, **changed):
    """Write a header with right checksums and other content."""
    import hashlib

    from rankgrove.data.spill_bins import checksum

    header = json.loads((folder / HEADER).read_bytes().partition(b"\n")[2]) | changed
    for name in header["files"]:
        path = folder / name
        header["files"][name] = [path.stat().st_size, checksum(path)]
    text = json.dumps(header)
    digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    (folder / HEADER).write_text(f"{digest}\n{text}\n")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("y", np.full(600, np.nan)),
        ("y", np.zeros(7)),
        ("query_of_row", np.full(600, 1 << 40)),
        ("query_of_row", np.zeros(600, np.int64)),
        ("bins_columns", np.full(136, 9999, np.int32)),
        ("bins_sizes", np.full(136, -1)),
        ("row_keys", np.zeros(600)),
    ],
)
def test_content_that_cannot_be_is_refused(made, tmp_path, name, array):
    folder = copied(made, tmp_path)
    np.save(folder / f"{name}.npy", array)
    crafted(folder)
    with pytest.raises(rg.DataError, match="damaged: its files do not fit each other"):
        rg.open_binned(folder)


def test_other_folders_are_not_overwritten(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "precious").touch()
    with pytest.raises(rg.DataError, match="mine exists and is no folder of bins"):
        rg.open_binned(path, folder=mine)
    assert (mine / "precious").exists()


def test_a_failure_leaves_nothing(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 qid:1 1:1\n" * 100 + "0 qid:1 1:oops\n")
    with pytest.raises(rg.ParseError, match=r"a.txt:101: .*'1:oops'"):
        rg.open_binned(path)
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


KILLED = """
import sys, time
import rankgrove as rg
import rankgrove.data.bin_files as files
def stop(*_, **__):
    print("now", flush=True)
    time.sleep(60)
files.write_header = stop
rg.open_binned(sys.argv[1])
"""


def started(script, path, text=KILLED):
    """Return a process that has begun to make bins, and stops there."""
    script.write_text(text)
    process = subprocess.Popen(
        [sys.executable, str(script), str(path)], stdout=subprocess.PIPE, env=os.environ
    )
    assert process.stdout.readline() == b"now\n"
    return process


def killed(process):
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.txt", "part[1].txt"])
def test_killed_while_binning(tmp_path, caplog, name):
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / name
    rg.write_letor(rg.make_web(10, n_docs=20, seed=1), path)
    process = started(tmp_path / "killed.py", path)
    alive = [p.name for p in folder.iterdir() if p.name.endswith(".part")]
    assert len(alive) == 1
    told, opened = [], []
    later = threading.Thread(target=lambda: opened.append(rg.open_binned(path, say=told.append)))
    later.start()
    while not told and later.is_alive():
        time.sleep(0.01)
    assert "another process makes or checks these bins; waiting for it" in told[0]
    assert (folder / alive[0]).exists()
    assert not caplog.records
    killed(process)
    later.join()
    assert len(told) == 2
    assert "used" not in told[1]
    assert "binning was interrupted by the end of its process" in caplog.text
    assert opened[0].n_queries == 10
    assert sorted(p.name for p in folder.iterdir()) == [name, f"{name}.bins"]


@pytest.mark.slow
def test_leftovers_are_removed_where_bins_are_used_again(tmp_path):
    path = tmp_path / "a.txt"
    rg.write_letor(rg.make_web(10, n_docs=20, seed=1), path)
    data = rg.open_binned(path)
    text = KILLED.replace("argv[1])", "argv[1], max_bins=7)")
    killed(started(tmp_path / "killed.py", path, text))
    assert list(tmp_path.glob(".*"))
    told = []
    again = rg.open_binned(path, say=told.append)
    assert "made before are used" in told[0]
    assert again.max_bins == data.max_bins == 255
    assert not list(tmp_path.glob(".*"))


BOTH = """
import sys
import numpy as np
import rankgrove as rg
path, max_bins = sys.argv[1], int(sys.argv[2])
expected = rg.open_binned(path, max_bins=max_bins, folder=path + sys.argv[2])
print("now", flush=True)
sys.stdin.readline()
for _ in range(25):
    data = rg.open_binned(path, max_bins=max_bins)
    assert data.max_bins == max_bins
    assert np.array_equal(data.bins.codes, expected.bins.codes)
    assert np.array_equal(data.bins.by_column(), expected.bins.by_column())
    assert data.same_bins(expected.binner)
"""


@pytest.mark.slow
def test_processes_with_other_options_get_what_they_ask_for(tmp_path):
    path, script = tmp_path / "a.txt", tmp_path / "both.py"
    rg.write_letor(rg.make_web(10, n_docs=20, seed=1), path)
    script.write_text(BOTH)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    processes = [
        subprocess.Popen([sys.executable, str(script), str(path), max_bins], text=True, **pipes)
        for max_bins in ("255", "7")
    ]
    for process in processes:
        assert process.stdout.readline() == "now\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    errors = [process.communicate()[1] for process in processes]
    assert not any("Error" in error or "interrupted" in error for error in errors), errors
    assert [process.returncode for process in processes] == [0, 0]
    assert not list(tmp_path.glob(".*"))


def replaced(folder, by):
    """Replace a folder of bins, as another process does that holds no lock."""
    os.replace(folder, folder.with_name("replaced"))
    shutil.copytree(by, folder)


def two_folders(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{i % 3} qid:{i // 9} 1:{i % 40} 3:{i % 7}\n" for i in range(99)))
    one = rg.open_binned(path, folder=tmp_path / "one")
    return path, one, rg.open_binned(path, folder=tmp_path / "other", max_bins=5)


def test_bins_that_are_replaced_at_once_are_those_that_were_made(tmp_path, monkeypatch):
    path, one, other = two_folders(tmp_path)
    folder = tmp_path / "bins"

    @contextmanager
    def then_replaced(folder):
        with draft_folder(folder) as draft:
            yield draft
        replaced(folder, other.folder)

    monkeypatch.setattr("rankgrove.data.bin_files.draft_folder", then_replaced)
    data = rg.open_binned(path, folder=folder)
    assert data.max_bins == 255
    assert data.folder == folder
    assert (data.bins.codes == one.bins.codes).all()
    assert (data.bins.by_column() == one.bins.by_column()).all()
    assert data.same_bins(one.binner)


def test_bins_of_two_folders_are_not_mixed(tmp_path, monkeypatch):
    _, one, other = two_folders(tmp_path)
    folder = tmp_path / "bins"
    shutil.copytree(one.folder, folder)

    def late(*arguments, **options):
        monkeypatch.setattr("rankgrove.data.binned_dataset.check_files", check_files)
        check_files(*arguments, **options)
        replaced(folder, other.folder)

    monkeypatch.setattr("rankgrove.data.binned_dataset.check_files", late)
    data = rg.open_binned(folder)
    assert data.max_bins == 5
    assert (data.bins.codes == other.bins.codes).all()
    assert data.same_bins(other.binner)


@pytest.mark.parametrize("content", [True, False])
def test_a_folder_that_disappears_is_an_error_in_words(made, tmp_path, monkeypatch, content):
    folder = copied(made, tmp_path)

    def gone(path):
        shutil.rmtree(folder, ignore_errors=True)
        return True

    monkeypatch.setattr("pathlib.Path.is_file", gone)
    with pytest.raises(rg.MissingFileError):
        BinnedDataset.load(folder, content=content)


def test_a_folder_that_cannot_be_replaced_stays(made, tmp_path, monkeypatch):
    folder, replace = copied(made, tmp_path), os.replace

    def fails(source, target):
        if str(source).endswith(".part"):
            raise PermissionError(13, "Permission denied")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(rg.DataError, match="cannot be written"), draft_folder(folder):
        pass
    assert BinnedDataset.load(folder).n_rows == made[1].n_rows
    assert [p.name for p in tmp_path.iterdir()] == [folder.name]


def test_a_folder_that_is_replaced_twice(made, tmp_path, monkeypatch):
    folder, replace = copied(made, tmp_path), os.replace
    tries = []

    def in_between(source, target):
        if str(source).endswith(".part") and not tries:
            tries.append(source)
            shutil.copytree(made[1].folder, folder)  # another process is quicker
        replace(source, target)

    monkeypatch.setattr(os, "replace", in_between)
    with draft_folder(folder) as draft:
        (draft / "mine").touch()
    assert tries
    assert [p.name for p in folder.iterdir()] == ["mine"]
    assert [p.name for p in tmp_path.iterdir()] == [folder.name]


def test_what_a_living_process_replaces_is_no_leftover(tmp_path, caplog):
    with scratch_folder(tmp_path / "x") as draft:
        old = draft.with_name(f"{draft.name}.old")
        old.mkdir()
        remove_leftovers(tmp_path / "x")
        assert old.exists()
    remove_leftovers(tmp_path / "x")
    assert not old.exists()
    assert not caplog.records


def test_one_process_at_a_time_has_the_lock_of_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("rankgrove.data.folder_lock.TOLD_AFTER", 0.02)
    said, inside = [], []

    def hold(i):
        with folder_lock(tmp_path / "x", lambda: said.append(i)):
            inside.append(i)
            time.sleep(0.1)
            assert inside.pop() == i
            assert not inside

    several = [threading.Thread(target=hold, args=[i]) for i in range(4)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()
    assert not inside
    assert len(said) == len(set(said)) == 3
    assert not list(tmp_path.iterdir())


def test_scratch_folders_of_the_living_stay(tmp_path):
    with scratch_folder(tmp_path / "x") as one, scratch_folder(tmp_path / "x") as two:
        assert one != two
        assert one.is_dir()
    assert not list(tmp_path.iterdir())


def test_views_have_the_rows_of_the_whole(made, monkeypatch):
    data, binned = made
    whole = rg.LambdaMART().bins(data)
    for queries in ([3, 4, 5], [5, 3, 29, 0], np.arange(30) % 3 == 0):
        for in_memory in (1 << 30, 0):
            monkeypatch.setattr(binned_part, "IN_MEMORY", in_memory)
            part, bins = data.select(queries), binned.select(queries)
            expected = whole.binner.transform(data.features, part.rows)
            assert (bins.bins.codes == expected.codes).all()
            assert (bins.bins.by_column() == expected.by_column()).all()
            assert (bins.row_keys == part.row_keys).all()
            assert (bins.y == part.y).all()
            nested = bins.select([1]).bins.codes
            assert (nested == bins.bins.codes[bins.query_ptr[1] : bins.query_ptr[2]]).all()
            again = pickle.loads(pickle.dumps(bins))
            assert (again.bins.codes == expected.codes).all()
            assert again.query_ids.tolist() == part.query_ids.tolist()
    assert len(pickle.dumps(binned)) < 500
    column = np.empty(binned.n_rows, np.uint8)
    for feature in (0, 77, binned.bins.n_kept - 1):
        binned.bins.columns.read(feature, column)
        assert (column == whole.codes[:, feature]).all()


def test_features_are_refused(made):
    _, binned = made
    for use in (
        lambda: binned.X,
        lambda: binned.column(1),
        lambda: rg.write_letor(binned, "x"),
        lambda: rg.RankNet().fit(binned),
        lambda: rg.RankSVM().fit(binned),
        lambda: rg.RankBoost().fit(binned),
        lambda: rg.ListNet().fit(binned),
    ):
        with pytest.raises(rg.RankgroveError):
            use()
    with pytest.raises(rg.ParameterError, match="has max_bins=255, the ranker 63"):
        rg.LambdaMART(max_bins=63).fit(binned)


@pytest.mark.parametrize("age", [0, 60])
def test_new_times_and_other_places_of_the_same_content_are_no_change(tmp_path, age):
    (tmp_path / "one").mkdir()
    path, told = tmp_path / "one" / "a.txt", []
    rg.write_letor(rg.make_web(10, n_docs=20, seed=1), path)
    os.utime(path, (time.time() - age,) * 2)
    like = rg.open_binned(path)
    rg.open_binned(path, folder=tmp_path / "one" / "valid.bins", like=like)
    path.chmod(0o600)
    os.utime(path, (1, 1))
    rg.open_binned(path, say=told.append)
    assert f"are used ({path} has new times, and the same content)." in told[-1]
    (tmp_path / "one").rename(tmp_path / "two")
    new = tmp_path / "two" / "a.txt"
    like = rg.open_binned(new, say=told.append)
    assert f"are used ({new} was {path}, and the same content)." in told[-1]
    rg.open_binned(new, folder=tmp_path / "two" / "valid.bins", like=like, say=told.append)
    assert "are used" in told[-1]
    blob = new.read_bytes()
    new.write_bytes(blob.replace(b"1:", b"2:", 1))  # as long
    with pytest.raises(rg.ParseError):
        rg.open_binned(new)
    rg.write_letor(rg.make_web(10, n_docs=20, seed=2), tmp_path / "two" / "b.txt")
    rg.open_binned(tmp_path / "two" / "b.txt", folder=like.folder, say=told.append)
    assert f"making bins again (they were made from {path})" in told[-1]


def test_a_folder_that_cannot_be_written_to_names_the_remedy(tmp_path):
    path = tmp_path / "a.txt"
    rg.write_letor(rg.make_web(5, n_docs=20, seed=1), path)
    with pytest.raises(rg.DataError, match=r"cannot be written: .* Put the bins elsewhere: --bins"):
        rg.open_binned(path, folder=path / "bins")
