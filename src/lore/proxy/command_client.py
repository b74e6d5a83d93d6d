"""Command client: let the running daemon execute a command, and print its output.

The daemon has everything loaded, so that a command costs little more than the start of an
interpreter. Whatever prevents this, the caller executes the command itself: each of these commands
can be executed twice.
"""

from __future__ import annotations

import json
import os
import sys

from lore.proxy.address import API_PREFIX, find_address
from lore.proxy.pager import is_paged, print_paged

TYPE_CHECKING = False  # as type checkers read it; importing `typing` would double the start-up

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMAND_PATH = f"{API_PREFIX}/command"

COMMANDS = frozenset(
    "recall ask search sessions standing remember read session explore roots traverse log diff"
    " timeline index why episode episodes stats status spend".split()
)
"""Commands that the daemon executes: none prompts, and executing one twice does no harm."""

PROCESS_VARIABLES = ("HOME", "TZ", "LORE_NOW")
"""Variables that apply to a whole process: the daemon declines if its own differ."""

_VARIABLES = ("NO_COLOR", "TERM", "UV_RUN_RECURSION_DEPTH", *PROCESS_VARIABLES)
_OWN_OPTIONS = ("--help", "-h", "--review")
"""Options with which a command explains itself or asks: it runs in its own process."""

_COMPLETION = "_LORE_COMPLETE"
_TIMEOUT_S = 600.0
_EXIT_INTERRUPTED = 130
_EXIT_BROKEN_PIPE = 1


def run_command(
    home: str, version: str, arguments: list[str], rest: list[str], environ: Mapping[str, str]
) -> int | None:
    """Let the daemon of a home execute a command; return the exit code, or None if it does not.

    `arguments` is the whole command line, `rest` what follows the global options.
    """
    if not _can_forward(rest, environ):
        return None
    try:
        answer = _ask(home, version, arguments, rest, environ)
        if answer is None:
            return None
        code, output = answer
        _print(output, environ if is_paged(rest) else None)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _EXIT_BROKEN_PIPE
    except OSError:
        return None
    except KeyboardInterrupt:
        sys.stderr.write("\nlore: Interrupted; what was acknowledged is stored.\n")
        return _EXIT_INTERRUPTED
    return code


def _can_forward(rest: list[str], environ: Mapping[str, str]) -> bool:
    """Return whether the daemon executes this command, with its output in the usual places."""
    if not rest or rest[0] not in COMMANDS or any(word in _OWN_OPTIONS for word in rest):
        return False
    return _COMPLETION not in environ and None not in (sys.stdout, sys.stderr)


def _ask(
    home: str, version: str, arguments: list[str], rest: list[str], environ: Mapping[str, str]
) -> tuple[int, list[tuple[int, str]]] | None:
    """Return exit code and output, as pairs of file descriptor and text; None without a daemon."""
    address = find_address(home)
    if address is None:
        return None
    request = {
        "version": version,
        "home": home,
        "arguments": arguments,
        "folder": os.getcwd(),
        "environ": {
            name: value
            for name, value in environ.items()
            if name in _VARIABLES or name.startswith("LORE_")
        },
        "terminals": [sys.stdout.isatty(), sys.stderr.isatty()],
        "stdin": _read_stdin() if "-" in rest else None,
    }
    from lore.proxy.daemon_client import DaemonCall  # it imports `socket`

    body = json.dumps(request).encode()
    status, answer = DaemonCall().post(
        address, COMMAND_PATH, body, {}, _TIMEOUT_S, check_health=True
    )
    if status != 200:
        return None
    try:
        outcome = json.loads(answer)
        return int(outcome["code"]), [
            (int(number), str(text)) for number, text in outcome["output"]
        ]
    except (ValueError, KeyError, TypeError):
        return None


def _read_stdin() -> str:
    """Read standard input, and leave it readable for a command that this process executes."""
    import io

    if sys.stdin is None:
        raise OSError
    data = sys.stdin.buffer.read()
    sys.stdin = io.TextIOWrapper(io.BytesIO(data))
    return data.decode("utf-8", "replace")


def _print(output: list[tuple[int, str]], paged: Mapping[str, str] | None) -> None:
    """Print the output in its order; `paged` is the environment of a pager."""
    streams = {1: sys.stdout, 2: sys.stderr}
    for stream in streams.values():
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")
    pages = paged if sys.stdout.isatty() else None
    for number, text in output:
        if number == 2 or pages is None:
            streams[number].write(text)
            streams[number].flush()
    if pages is not None:
        print_paged("".join(text for number, text in output if number == 1), pages)
    sys.stdout.flush()
