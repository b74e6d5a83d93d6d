"""Two homes that sync over a real sshd on loopback, with keys and a configuration of its own."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.sync.test_end_to_end import Laptop, fill
from tests.waiting import eventually

_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
SSHD = shutil.which("sshd", path=_PATH)
_RUN = Path("/run/sshd")
"""Where sshd of the superuser locks up what is not trusted yet; packages create it at a boot."""

pytestmark = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None or shutil.which("ssh-keygen") is None,
    reason="sshd, ssh and ssh-keygen (openssh-server, openssh-client) are not all installed",
)


@dataclass
class Link:
    """A port that forwards to another one, and breaks connections after some bytes of answers."""

    target: int
    most: int | None = None
    """Bytes to the client until the link breaks; None: it holds."""
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
                threading.Thread(
                    target=self._pump, args=(client, server, None), daemon=True
                ).start()
                pump = (server, client, self.most)
                threading.Thread(target=self._pump, args=pump, daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket, most: int | None) -> None:
        left = most
        with suppress(OSError):
            while data := source.recv(4_096):
                if left is not None and len(data) > left:
                    break
                left = None if left is None else left - len(data)
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@dataclass
class Sshd:
    """A running sshd, the link before it, and how clients reach it."""

    folder: Path
    link: Link
    config: Path


def make_key(path: Path) -> str:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path.with_suffix(".pub").read_text("utf-8")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def run_folder() -> Iterator[None]:
    """Create what sshd of the superuser needs, if no package has."""
    makes = os.getuid() == 0 and not _RUN.exists()
    if makes:
        _RUN.mkdir(mode=0o755)
    try:
        yield
    finally:
        if makes:
            _RUN.rmdir()


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    folder = tmp_path / "ssh"
    folder.mkdir(mode=0o700)
    host, own = make_key(folder / "host"), make_key(folder / "own")
    (folder / "authorized").write_text(own)
    port = free_port()
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nPasswordAuthentication no\n"
        "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nPrintMotd no\n"
    )
    link = Link(port)
    (folder / "known").write_text(f"[127.0.0.1]:{link.port} {host}")
    config = folder / "config"
    config.write_text(
        f"Host laptop\n  HostName 127.0.0.1\n  Port {link.port}\n  User {getpass.getuser()}\n"
        f"  IdentityFile {folder}/own\n  IdentitiesOnly yes\n  BatchMode yes\n"
        f"  UserKnownHostsFile {folder}/known\n  GlobalKnownHostsFile /dev/null\n"
        "  StrictHostKeyChecking yes\n"
    )
    assert SSHD is not None
    command = [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")]
    with (
        run_folder(),
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as process,
    ):
        threading.Thread(target=link.serve, daemon=True).start()
        try:
            eventually(lambda: b"Server listening" in (folder / "log").read_bytes())
            yield Sshd(folder, link, config)
        finally:
            link.listener.close()
            process.terminate()


@pytest.fixture
def laptops(tmp_path: Path, sshd: Sshd) -> tuple[Laptop, Laptop]:
    """Two homes; the first reaches the second by ssh."""
    other = Laptop(tmp_path, "other")
    remote = f"env LORE_HOME={other.home} LORE_EMBED_PROVIDER=none {sys.executable} -m lore.cli"
    ssh = {"LORE_SYNC_SSH": f"ssh -F {sshd.config}", "LORE_SYNC_REMOTE": remote}
    return Laptop(tmp_path, "one", **ssh), other


def test_two_homes_are_the_same_after_a_sync_over_ssh(laptops: tuple[Laptop, Laptop]):
    one, other = laptops
    fill(one)
    other.do("remember", "Deploys go out on Tuesdays only.", "--everywhere")
    result = one.sync("laptop:")
    assert result["state_hash"] == result["peer_hash"] == other.hash() == one.hash()
    again = one.sync("laptop:")
    assert (again["sent"], again["received"], again["changed"]) == (0, 0, 0)
    assert "Tuesdays" in one.do("recall", "when do deploys go out")
    assert "zebrafish" in other.do("recall", "name of the staging database")


def test_a_broken_connection_is_said_and_the_next_sync_goes_on(
    laptops: tuple[Laptop, Laptop], sshd: Sshd
):
    one, other = laptops
    fill(other)
    one.do("remember", "Deploys go out on Tuesdays only.", "--everywhere")
    for most in (500, 4_000, 40_000, 120_000):
        sshd.link.most = most
        failed = one.run("sync", "laptop:")
        assert failed.returncode == 18, (most, failed.stdout, failed.stderr)
        assert "laptop: ended the connection" in failed.stderr
    [peer] = one_status(one)
    assert "ended the connection" in peer["problem"]
    sshd.link.most = None
    result = one.sync("laptop:")
    assert result["state_hash"] == result["peer_hash"] == other.hash() == one.hash()
    assert [peer["problem"] for peer in one_status(one)] == [""]


def one_status(laptop: Laptop) -> list[dict[str, str]]:
    peers: list[dict[str, str]] = json.loads(laptop.do("sync", "--status", "--json"))["peers"]
    return peers


def test_a_killed_sync_leaves_no_process_on_the_other_side(
    laptops: tuple[Laptop, Laptop], sshd: Sshd
):
    one, other = laptops
    fill(one)
    command = [sys.executable, "-m", "lore.cli", "sync", "laptop:"]
    with subprocess.Popen(
        command, env=one.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        eventually(lambda: processes_of(other))
        process.send_signal(signal.SIGKILL)
    eventually(lambda: not processes_of(other))
    result = one.sync("laptop:")
    assert result["state_hash"] == result["peer_hash"] == other.hash()


def processes_of(laptop: Laptop) -> list[str]:
    """Return the processes that answer for a home."""
    numbers = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            words = (path.parent / "cmdline").read_bytes()
            if f"LORE_HOME={laptop.home}".encode() in path.read_bytes() and b"--stdio" in words:
                numbers.append(path.parent.name)
    return numbers


def test_a_host_with_another_key_and_an_unknown_user_are_refused(
    laptops: tuple[Laptop, Laptop], sshd: Sshd
):
    one, _ = laptops
    fill(one)
    (sshd.folder / "authorized").write_text("")
    refused = one.run("sync", "laptop:")
    assert refused.returncode == 18
    assert "Permission denied" in refused.stderr
    known = sshd.folder / "known"
    known.write_text(f"[127.0.0.1]:{sshd.link.port} {make_key(sshd.folder / 'another')}")
    changed = one.run("sync", "laptop:")
    assert changed.returncode == 18
    assert "Host key verification failed" in changed.stderr


def test_a_host_without_lore_says_so(laptops: tuple[Laptop, Laptop]):
    one, _ = laptops
    fill(one)
    failed = one.run("sync", "laptop:", LORE_SYNC_REMOTE="lore-that-is-not-there")
    assert failed.returncode == 18
    assert "not found" in failed.stderr
