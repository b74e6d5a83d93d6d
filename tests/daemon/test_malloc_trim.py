from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import re, threading
from pathlib import Path
from lore.daemon import main_loop

assert main_loop.limit_heap() is True

def work():
    barrier.wait()
    held.append([bytearray(50_000) for _ in range(40)])
    barrier.wait()

held, barrier = [], threading.Barrier(12)
threads = [threading.Thread(target=work) for _ in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
full = resident()
held.clear()
main_loop.trim()
print(full - resident())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="parameters of glibc")
def test_freed_memory_of_many_threads_is_returned():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True)
    assert int(done.stdout) > 12 * 40 * 50 * 0.5
