from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from lore.gateway import connection_owner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")

WAYS = [connection_owner.find_owner, connection_owner._ask_kernel, connection_owner._search_tables]
"""The kernel is asked, and its tables are read where it does not answer: both say the same."""


@pytest.mark.parametrize("find", WAYS)
@pytest.mark.parametrize(
    ("family", "host"),
    [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")],
)
def test_owner_of_a_connection_is_found(find: connection_owner.Find, family: int, host: str):
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("this machine has no such loopback")
    with server, socket.create_connection(server.getsockname()[:2]) as client:
        ends = client.getsockname()[:2], client.getpeername()[:2]
        assert find(*ends) == os.geteuid()
        assert find(ends[0], (host, 1)) is None


@pytest.mark.parametrize("find", WAYS)
def test_owner_of_an_ipv4_mapped_connection_is_found(find: connection_owner.Find):
    try:
        server = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    except (OSError, ValueError):
        pytest.skip("this machine has no dual sockets")
    port = server.getsockname()[1]
    with server, socket.create_connection(("127.0.0.1", port)):
        accepted, seen = server.accept()
        with accepted:
            ends = seen[:2], accepted.getsockname()[:2]
            assert str(ends[0][0]).startswith("::ffff:")
            assert find(*ends) == os.geteuid()


@pytest.mark.parametrize("find", WAYS)
def test_owner_of_an_ipv6_client_of_an_ipv4_server_is_found(find: connection_owner.Find):
    try:
        client = socket.socket(socket.AF_INET6)
        server = socket.create_server(("127.0.0.1", 0))
        client.connect(("::ffff:127.0.0.1", server.getsockname()[1]))
    except OSError:
        pytest.skip("this machine has no dual sockets")
    with server, client:
        accepted, seen = server.accept()
        with accepted:
            assert find(seen[:2], accepted.getsockname()[:2]) == os.geteuid()


def test_listener_at_the_clients_address_is_not_the_owner():
    # Asked for a connection that is none, the kernel answers with who waits for one there.
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert connection_owner.find_owner(listening.getsockname(), ("127.0.0.1", 9)) is None


@pytest.mark.parametrize("find", WAYS)
def test_closed_connection_has_no_owner(find: connection_owner.Find):
    # What is left of it for a while has no process, and is shown as the first user's.
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        ends = client.getsockname(), client.getpeername()
        accepted, _ = server.accept()
        client.close()
        accepted.close()
        assert find(*ends) is None


def test_exhausted_file_descriptors_raise_an_error():
    ask = (
        "import errno, os, resource, socket\n"
        "from lore.gateway.connection_owner import find_owner\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "client = socket.create_connection(server.getsockname())\n"
        "ends = client.getsockname(), client.getpeername()\n"
        "most = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, most[1]))\n"
        "try:\n"
        "    print(find_owner(*ends))\n"
        "except OSError as error:\n"
        "    print(errno.errorcode[error.errno])\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, most)\n"
        "print(find_owner(*ends) == os.geteuid())\n"
    )
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["EMFILE", "True"]
