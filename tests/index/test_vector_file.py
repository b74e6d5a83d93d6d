from __future__ import annotations

import multiprocessing
import os
import random
import resource
import signal
import stat
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from lore.errors import StoreError, StoreReadOnly
from lore.index.vector_index import VectorFilter, VectorIndex
from tests.index.vector_samples import DIMENSION, clustered, fill, open_index, row, vector_of
from tests.waiting import eventually

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["hypothesis", "pytest", "lore.index.vector_index"])


# Damage


def cut(path: Path, size: int) -> None:
    os.truncate(path, size)


def scribble(path: Path, start: int, end: int) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(random.Random(3).randbytes(end - start))


def put_link(path: Path) -> None:
    target = path.with_name("elsewhere")
    path.rename(target)
    path.symlink_to(target)


def put_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGE = {
    "empty": lambda path: cut(path, 0),
    "cut in the header": lambda path: cut(path, 50),
    "cut in a block": lambda path: cut(path, 100_000),
    "cut by one byte": lambda path: cut(path, path.stat().st_size - 1),
    "random header": lambda path: scribble(path, 0, 8_192),
    "random file": lambda path: scribble(path, 0, path.stat().st_size),
    "missing": lambda path: path.unlink(),
    "a link": put_link,
    "a pipe": put_pipe,
}


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("running", [False, True])
def test_a_damaged_file_gives_an_empty_index_that_works(tmp_path, kind, running):
    index = open_index(tmp_path)
    fill(index, range(1, 9))
    if not running:
        index.close()
    DAMAGE[kind](tmp_path / "vectors.index")
    if not running:
        index = open_index(tmp_path)
    assert (len(index), index.last_seq, index.private) == (0, 0, False)
    fill(index, range(1, 9))
    assert index.search(vector_of(5), 1)[0].tolist() == [5]
    assert len(open_index(tmp_path)) == 8


def test_one_damaged_header_copy_loses_at_most_the_last_commit(tmp_path):
    index = open_index(tmp_path)
    for seq in range(1, 6):
        fill(index, [seq])
    for start in (0, 4_096):
        again = (tmp_path / "vectors.index").read_bytes()
        scribble(tmp_path / "vectors.index", start, start + 64)
        assert index.last_seq in {4, 5}
        fill(index, range(1, 6))
        assert (len(index), index.check()) == (5, [])
        (tmp_path / "vectors.index").write_bytes(again)


@pytest.mark.parametrize(
    "other", [{"identity": "else"}, {"epoch": "two"}, {"dimension": DIMENSION + 1}]
)
def test_an_index_of_another_stamp_is_not_used(tmp_path, other):
    first = open_index(tmp_path)
    fill(first, range(1, 9))
    second = open_index(tmp_path, **other)
    assert (len(second), second.private) == (0, False)
    # The one that lost the folder goes on alone, and does not take it back.
    assert (len(first), first.private) == (0, True)
    fill(first, range(1, 4))
    assert (len(first), len(second), second.private) == (3, 0, False)


def test_forgetting_deletes_a_shared_file_of_another_stamp(tmp_path):
    first = open_index(tmp_path)
    second = open_index(tmp_path, identity="else")
    fill(second, range(1, 9))
    fill(first, range(1, 4))
    before = (tmp_path / "vectors.index").stat().st_ino
    first.remove([2])
    assert len(second) == 0  # it is built again, without what was forgotten
    assert not (tmp_path / "vectors.index").exists() or (
        (tmp_path / "vectors.index").stat().st_ino != before
    )


def test_damaged_rows_are_found_by_the_check_and_do_not_stop_a_search(tmp_path):
    index = open_index(tmp_path)
    fill(index, range(1, 9))
    layout = index._storage.layout
    scribble(tmp_path / "vectors.index", layout.at("codes", 2), layout.at("codes", 4))
    scribble(tmp_path / "vectors.index", layout.at("scale", 0), layout.at("scale", 5))
    assert index.check() == ["5 rows of the vector index are damaged"]
    assert len(index.search(vector_of(5), 8)[0]) == 8


def test_the_check_names_a_damaged_header(tmp_path):
    index = open_index(tmp_path)
    scribble(tmp_path / "vectors.index", 0, 8_192)
    assert index.check() == ["the header of the vector index is damaged"]


# Folders, permissions and full disks


def test_folder_and_files_are_private(tmp_path):
    fill(open_index(tmp_path / "new" / "index"), [1])
    folder = tmp_path / "new" / "index"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("name", ["vectors.index", "vectors.lock"])
def test_links_in_place_of_files_are_not_followed(tmp_path, name):
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    folder = tmp_path / "index"
    folder.mkdir()
    (folder / name).symlink_to(target)
    index = open_index(folder)
    fill(index, range(1, 4))
    assert len(index) == 3
    assert target.read_bytes() == b"precious"


def test_without_a_folder_the_index_is_private(tmp_path):
    (tmp_path / "file").touch()
    index = open_index(tmp_path / "file" / "index")
    assert index.private
    fill(index, range(1, 40))
    index.remove([3])
    assert (len(index), index.last_seq, index.check()) == (38, 39, [])
    assert index.search(vector_of(5), 1)[0].tolist() == [5]
    index.clear()
    assert (len(index), index.last_seq) == (0, 0)


def test_a_private_index_grows_past_its_first_block(tmp_path):
    (tmp_path / "file").touch()
    index = open_index(tmp_path / "file" / "index")
    vectors = clustered(40_000, DIMENSION)
    index.append([row(s) for s in range(1, 40_001)], vectors)
    assert (len(index), index.check()) == (40_000, [])
    assert index.search(vectors[39_000], 1)[1][0] > 0.99


def test_a_read_only_index_continues_in_memory_with_all_rows(tmp_path):
    writer = open_index(tmp_path)
    fill(writer, range(1, 9))
    reader = open_index(tmp_path, writable=False)
    assert not reader.private
    fill(reader, range(1, 12))
    assert (reader.private, len(reader), len(writer)) == (True, 11, 8)
    assert open_index(tmp_path / "none", writable=False).private


def _in_a_folder_it_may_only_read(folder, answers):
    os.chdir(folder)
    for path in (Path(), Path("index"), *Path("index").iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    Path("index").chmod(0o555)
    rows, vectors = (
        [row(s) for s in range(1, 12)],
        np.stack([vector_of(s) for s in range(1, 12)]),
    )
    os.setresuid(65_534, 65_534, 65_534)
    index = open_index(Path("index"))
    before = (len(index), index.private)
    index.append(rows, vectors)
    try:
        index.remove([1])
        answers.put((before, len(index), index.private, "erased"))
    except StoreReadOnly:
        answers.put((before, len(index), index.private, "refused"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user")
def test_an_index_in_a_read_only_folder_moves_to_memory(tmp_path):
    fill(open_index(tmp_path / "index"), range(1, 9))
    assert ask(_in_a_folder_it_may_only_read, tmp_path) == ((8, False), 10, True, "refused")


def _with_a_full_disk(folder, answers):
    index = open_index(folder)
    fill(index, range(1, 9))
    size = (folder / "vectors.index").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    vectors = clustered(20_000, DIMENSION)
    index.append([row(s) for s in range(9, 20_009)], vectors)
    answers.put((len(index), index.last_seq, index.private, index.check()))


def test_a_full_disk_leaves_a_private_index_with_all_rows(tmp_path):
    assert ask(_with_a_full_disk, tmp_path) == (20_008, 20_008, True, [])
    rest = open_index(tmp_path)
    assert (len(rest), rest.last_seq) == (8 + 16_376 * (rest.last_seq > 8), rest.last_seq)
    assert rest.check() == []


def test_a_closed_index_raises(tmp_path):
    index = open_index(tmp_path)
    index.close()
    index.close()
    with pytest.raises(StoreError, match="closed"):
        index.search(vector_of(1), 1)


# Several processes and threads


def ask(function, *given):
    answers = PROCESSES.Queue()
    process = PROCESSES.Process(target=function, args=(*given, answers))
    process.start()
    answer = answers.get(timeout=30)
    process.join()
    answers.close()
    return answer


def test_a_reader_follows_growth_and_new_files(tmp_path):
    writer, reader = open_index(tmp_path), open_index(tmp_path, writable=False)
    vectors = clustered(20_000, DIMENSION)
    writer.append([row(s) for s in range(1, 20_001)], vectors)
    old = reader._snapshot()
    assert len(reader) == 20_000
    assert reader.search(vectors[19_999], 1)[1][0] > 0.99
    writer.clear()
    assert (len(reader), reader.last_seq) == (0, 0)
    fill(writer, range(1, 9))
    assert reader.search(vector_of(5), 1)[0].tolist() == [5]
    assert np.count_nonzero(old.live_rows()) == 20_000


def _add_and_search(folder, place, together, answers):
    index = open_index(folder)
    together.wait(30)
    draw = random.Random(place)
    while (last := index.last_seq) < 3_000:
        fill(index, range(last + 1, min(last + draw.randint(2, 90), 3_001)))
        seen = draw.randint(1, last + 1)
        found, _ = index.search(vector_of(seen), 1)
        if found.tolist() != [seen]:
            answers.put(f"{seen} was not found, but {found}")
            return
    answers.put(len(index))


def test_four_concurrent_processes_lose_no_rows(tmp_path):
    answers, together = PROCESSES.Queue(), PROCESSES.Barrier(4)
    started = [
        PROCESSES.Process(target=_add_and_search, args=(tmp_path, place, together, answers))
        for place in range(4)
    ]
    for process in started:
        process.start()
    assert [answers.get(timeout=60) for _ in started] == [3_000] * 4
    for process in started:
        process.join()
    answers.close()
    index = open_index(tmp_path)
    assert (len(index), index.last_seq, index.check()) == (3_000, 3_000, [])


def item_of(seq: int) -> int:
    return seq * 7 % 500


def add_items(index: VectorIndex, rows: int) -> None:
    seqs = range(index.last_seq + 1, index.last_seq + rows + 1)
    index.append([row(s, item_of(s)) for s in seqs], np.stack([vector_of(s) for s in seqs]))


def _kill_writers(folder, answers):
    index, draw, found = open_index(folder), random.Random(5), []
    for _ in range(40):
        before = index.last_seq
        writer = os.fork()
        while writer == 0:
            add_items(open_index(folder), draw.randint(1, 40))
        try:
            eventually(lambda: index.last_seq != before, every_s=0.000_5)  # noqa: B023 - asked here
            time.sleep(draw.uniform(0, 0.02))
        finally:
            os.kill(writer, signal.SIGKILL)
            os.waitpid(writer, 0)
        again = open_index(folder)
        found += again.check()
        if again.private or again.last_seq != index.last_seq:
            found.append(f"{again.last_seq} rows, private: {again.private}")
        again.close()
    answers.put(found)


def test_an_index_whose_writers_are_killed_stays_sound(tmp_path):
    assert ask(_kill_writers, tmp_path) == []
    index = open_index(tmp_path)
    assert index.last_seq >= 40
    add_items(index, 600)
    last = index.last_seq
    assert (len(index), index.private, index.check()) == (500, False, [])
    for seq in range(last - 499, last + 1, 7):
        found, scores = index.search(vector_of(seq), 1)
        assert (found[0], scores[0]) == (item_of(seq), pytest.approx(1, abs=0.01))


def test_threads_search_while_another_adds_and_clears(tmp_path):
    index, wrong, done = open_index(tmp_path), [], threading.Event()

    def look():
        while not done.is_set():
            found, scores = index.search(vector_of(1), 5, where=VectorFilter(ns=np.arange(1, 50)))
            if len(found) != len(set(found.tolist())) or not np.isfinite(scores).all():
                wrong.append(found)

    lookers = [threading.Thread(target=look) for _ in range(3)]
    for looker in lookers:
        looker.start()
    for turn in range(60):
        fill(index, range(index.last_seq + 1, index.last_seq + 30))
        index.remove([turn])
        if turn % 20 == 19:
            index.clear()
    done.set()
    for looker in lookers:
        looker.join()
    assert wrong == []
