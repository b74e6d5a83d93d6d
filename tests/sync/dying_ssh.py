"""A stand-in for ssh: runs the command in another home, and can kill either side after some lines.

Called as ssh is: options, '--', the host, the command. The environment says which home is the
other machine (OTHER_HOME), and who is killed after how many lines of the answer (DIES=remote:4).
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys


def main() -> int:
    """Run the command of the other machine."""
    command = shlex.split(sys.argv[sys.argv.index("--") + 2])
    who, _, lines = os.environ.get("DIES", ":0").partition(":")
    environ = {**os.environ, "LORE_HOME": os.environ["OTHER_HOME"]}
    sys.stdout.write("Last login: yesterday\n")
    sys.stdout.flush()
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE) as remote:
        assert remote.stdout is not None
        for place, line in enumerate(remote.stdout, 1):
            if who and place == int(lines):
                os.kill(remote.pid if who == "remote" else os.getppid(), signal.SIGKILL)
                break
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
    return remote.returncode


if __name__ == "__main__":
    sys.exit(main())
