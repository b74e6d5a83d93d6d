from __future__ import annotations

import pytest

from lore.store.sync_shapes import project_identity
from lore.text.remotes import without_user


@pytest.mark.parametrize(
    "user",
    ["ann@", "ann:pass@", "ann:p@ssw0rd@", "ann:p/ss@", "ann:p/s@s/w@", "ann:p?s#s@", ":@", "@"],
)
@pytest.mark.parametrize("place", ["git.example/x", "git.example:8443/x", "[::1]:8443/x"])
def test_a_remote_goes_without_user_and_password(user: str, place: str) -> None:
    plain = f"https://{place}"
    assert without_user(f"https://{user}{place}") == plain
    assert without_user(plain) == plain
    assert project_identity(f"https://{user}{place}", "/a") == project_identity(plain, "/b")


@pytest.mark.parametrize(
    "remote",
    [
        "https://git.example/@scope/x",
        "https://git.example:8443/x@y",
        "https://git.example:/x@y",
        "https://[::1]:8443/x@y",
        "git@host:me/code",
        "/srv/x@y",
        "",
    ],
)
def test_a_sign_in_the_path_of_a_remote_is_no_user(remote: str) -> None:
    assert without_user(remote) == remote
