from __future__ import annotations

import pytest

from lore.errors import DaemonError
from lore.server.serving import bind


def test_a_port_that_is_taken_gives_way_to_another():
    first, free = bind("127.0.0.1", 0)
    with first:
        assert free
        port = first.getsockname()[1]
        second, free = bind("127.0.0.1", port)
        with second:
            assert not free
            assert second.getsockname()[1] not in (0, port)


@pytest.mark.parametrize("host", ["no such host", "a" * 300, "203.0.113.7"])
def test_what_is_no_address_of_this_machine_is_refused_with_the_setting(host: str):
    with pytest.raises(DaemonError) as refused:
        bind(host, 0)
    assert "server.host" in refused.value.hint
