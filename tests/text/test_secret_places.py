"""Secret places: every one of them begins with a head, or it would never be found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.text.linear import compile_linear
from lore.text.secret_places import PLACE_HEADS, PLACES

PLACE = compile_linear(PLACES, groups=False)
HEAD = compile_linear(PLACE_HEADS, groups=False)

VALUE = "Gr4nite!Owl92"
BEGUN = [
    "Authorization: ", "bearer ", "basic ", "login('bob', '", "connect(host, 'bob', '",
    "creds: bob / ", "use bob:", "a@b.example / ", " → bob : ", "seed phrase: ", "backup codes: ",
    "TOTP ", "kind: Secret\n", " -u bob:", " --user=bob:", " --db-password ", "\n-token ",
    "setx MY_TOKEN ", "nmcli con modify wlan0 wifi.psk ", "login bob password ", "securestring ",
    " -p", "pass pass:", ":5432:db:bob:", "identified by '", " cargo login ",
    " net use x: /user:bob ", " htpasswd -b file bob ", " server 10.0.0.1 key ",
    " snmpwalk -v1 -c ", " username bob password ",
    " smbclient -U bob%", " wmiexec.py bob:", " user bob on >", " token <(echo ", "1> auth ",
    "]:22 bob:", "/v DefaultPassword /d ", '" * "', '\n"bob" "', "secrets set A --body ",
    "put-parameter --value ", "| chpasswd", "input password  pwd  ", 'assword: send "',
    " -b ", "wallet = '" + "a1" * 32 + "'", "[" + "12, " * 64, "+AStAbcde=", "</P><Q>",
    "createHmac(x, '",
    "fill(password, '", "assertEqual('", ") values (", "tokens = [", "api_key = ", "token or '",
    "password').fill('", "password', '", "secret{ '", "<password>", "password value = ", "pat: ",
    "token\" { default = ", "password is ", "password 1", "password | ", "auth '", "value: x1",
    "contraseña ", "пароль ", "jeton ", " is the password ", " as password ", "log in as bob, ",
    "?key=", "://bob:", "%3a%2f%2fbob%3aword%40", "://" + "a" * 24 + "@", "@tcp(",
    "@db.example:5432 ", "password</b>: <b>", 'password field", "text": "', "password(value='",
    'password"\n\n',
]  # fmt: skip
"""One beginning of each kind of place, or more."""

PIECES = st.sampled_from([*BEGUN, VALUE, "0x" + "a1" * 32, "word", " ", "\n", '"', "'", "=", "\\n"])


def starts_of(text: str) -> list[int]:
    """Return where places start in a text, also where one starts within another."""
    data = text.encode()
    starts: list[int] = []
    while (found := PLACE.search(data, starts[-1] + 1 if starts else 0)) is not None:
        starts.append(found.start())
    return starts


def test_there_is_a_beginning_of_each_kind_of_place():
    grouped = compile_linear(PLACES)
    names = {index: name for name, index in grouped.groupindex.items() if name != b"word"}
    texts = [f"it {begun}{VALUE}' there".encode() for begun in BEGUN]
    matches = [grouped.match(text, start) for text in texts for start in starts_of(text.decode())]
    assert {names[match.lastindex] for match in matches} == set(names.values())


@pytest.mark.parametrize("begun", BEGUN)
def test_every_place_begins_with_a_head(begun: str):
    text = f"it {begun}{VALUE}' there"
    assert all(HEAD.match(text.encode(), start) for start in starts_of(text))


@given(st.lists(PIECES, max_size=10).map("".join))
def test_whatever_stands_around_it_a_place_begins_with_a_head(text: str):
    assert all(HEAD.match(text.encode(), start) for start in starts_of(text))
