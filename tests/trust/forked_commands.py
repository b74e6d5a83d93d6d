"""Commands in processes of their own that are forked after the imports, which take most of a start.

It runs apart from pytest (`python -m tests.trust.forked_commands`), so that no thread is there to
fork. It reads a list of homes with commands, and writes what each printed to stderr.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path

from lore.cli import main

for module in ("lore.cli.app", "lore.memory"):  # before the fork, for all commands
    importlib.import_module(module)


def run(home: str, words: list[str]) -> str:
    """Run a command and return what it printed to stderr."""
    with tempfile.TemporaryFile() as errors, Path(os.devnull).open("r+b") as nothing:
        pid = os.fork()
        if pid == 0:
            for stream, number in ((nothing, 0), (nothing, 1), (errors, 2)):
                os.dup2(stream.fileno(), number)
            os.environ["LORE_HOME"] = home
            try:
                main(words)
            except SystemExit:
                pass
            except BaseException:  # noqa: BLE001 - the test reads stderr
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(0)
        os.waitpid(pid, 0)
        errors.seek(0)
        return errors.read().decode()


if __name__ == "__main__":
    for home, words in json.load(sys.stdin):
        sys.stdout.write(json.dumps([home, words, run(home, words)]) + "\n")
        sys.stdout.flush()
