"""The pool: bounded, one of each, closed when idle, safe for many threads."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from lore.errors import StoreBusy
from lore.server.owner_pool import OwnerPool


class Opened:
    """What a pool opens; counts what is open."""

    def __init__(self, owner: str, counts: Counter[str]) -> None:
        self.owner, self.counts, self.is_open = owner, counts, True
        counts[owner] += 1
        assert counts[owner] == 1, "opened twice"

    def close(self) -> None:
        assert self.is_open
        self.is_open = False
        self.counts[self.owner] -= 1


class Seconds:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def counts() -> Counter[str]:
    return Counter()


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def pool(counts, seconds) -> OwnerPool[Opened]:
    return OwnerPool(
        lambda owner: Opened(owner, counts), Opened.close, most=2, idle_s=60, monotonic=seconds
    )


def test_the_least_recently_used_makes_room(pool: OwnerPool[Opened]):
    for owner in ("ann", "ben", "ann", "cy"):
        with pool.lease(owner):
            pass
    assert pool.owners() == ["ann", "cy"]


def test_what_is_leased_is_never_closed_and_a_full_pool_says_so(pool: OwnerPool[Opened]):
    with pool.lease("ann") as ann, pool.lease("ben"):
        with pytest.raises(StoreBusy), pool.lease("cy", wait_s=0.0):
            pass
        assert ann.is_open
    with pool.lease("cy"):
        assert len(pool) == 2


def test_a_request_waits_for_a_place(pool: OwnerPool[Opened]):
    pool.acquire("ann")
    pool.acquire("ben")
    got = threading.Event()

    def wait() -> None:
        with pool.lease("cy", wait_s=30):
            got.set()

    thread = threading.Thread(target=wait)
    thread.start()
    pool.release("ann")
    thread.join(30)
    assert got.is_set()
    assert pool.owners() == ["ben", "cy"]
    pool.release("ben")


def test_a_request_waits_while_another_one_opens_its_memory(counts):
    opening, may_open = threading.Event(), threading.Event()

    def open_(owner: str) -> Opened:
        opening.set()
        assert may_open.wait(60)
        return Opened(owner, counts)

    pool = OwnerPool(open_, Opened.close, most=2, idle_s=60)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(pool.acquire, "ann")
        assert opening.wait(60)
        second = threads.submit(pool.acquire, "ann", wait_s=0.0)
        assert not wait([second], timeout=0.2).done
        may_open.set()
        assert first.result(60) is second.result(60)


def test_idle_ones_are_closed_and_background_work_is_no_use(pool, seconds, counts):
    with pool.lease("ann"), pool.lease("ben"):
        pass
    seconds.now = 30
    with pool.lease("ben"), pool.lease("ann", is_use=False):
        pass
    seconds.now = 61
    assert pool.close_idle() == 1
    assert pool.owners() == ["ben"]
    assert counts["ann"] == 0


def test_a_failure_to_open_leaves_the_place_free(counts):
    tries: list[str] = []

    def fail_once(owner: str) -> Opened:
        tries.append(owner)
        if len(tries) == 1:
            msg = "The disk is full."
            raise StoreBusy(msg)
        return Opened(owner, counts)

    pool = OwnerPool(fail_once, Opened.close, most=1, idle_s=60)
    with pytest.raises(StoreBusy), pool.lease("ann"):
        pass
    with pool.lease("ann"):
        assert counts["ann"] == 1


def test_close_waits_for_leases_and_opens_nothing_more(pool: OwnerPool[Opened], counts):
    pool.acquire("ann")
    assert not pool.close(wait_s=0.0)
    pool.release("ann")
    assert pool.close(wait_s=0.0)
    assert counts["ann"] == 0
    with pytest.raises(StoreBusy), pool.lease("ann"):
        pass


def test_many_threads_never_open_an_owner_twice(counts):
    pool = OwnerPool(lambda owner: Opened(owner, counts), Opened.close, most=3, idle_s=0)
    failures: list[BaseException] = []

    def use(seed: int) -> None:
        try:
            for i in range(200):
                owner = f"o{(seed * 7 + i * 3) % 8}"
                with pool.lease(owner, wait_s=60) as opened:
                    assert opened.is_open
                    assert opened.owner == owner
                if i % 20 == 0:
                    pool.close_idle()
        except BaseException as error:  # noqa: BLE001 - told to the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=use, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(pool) <= 3
    assert pool.close()
    assert counts.total() == 0
