"""Assignment rules: every rule has a head, without which it would never match."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.redaction import RULES_FOLDER, load_pattern
from lore.redaction.assignment_rules import FAMILIES, rule_set
from lore.text.regex import compile_re2

RULES = rule_set(frozenset())
PLACE = compile_re2(RULES.pattern, groups=False)

VALUE = "Gr4nite!Owl92"
OPENINGS = [
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
    " -b ", "createHmac(x, '",
    "fill(password, '", "assertEqual('", ") values (", "tokens = [", "api_key = ", "token or '",
    "password').fill('", "password', '", "secret{ '", "<password>", "password value = ", "pat: ",
    "token\" { default = ", "password is ", "password 1", "password | ", "auth '", "value: x1",
    "contraseña ", "пароль ", "jeton ", " is the password ", " as password ", "log in as bob, ",
    "?key=", "://bob:", "%3a%2f%2fbob%3aword%40", "://" + "a" * 24 + "@", "@tcp(",
    "@db.example:5432 ", "password</b>: <b>", 'password field", "text": "', "password(value='",
    'password"\n\n',
]  # fmt: skip
"""At least one opening text for each rule."""

PIECES = st.sampled_from([
    *OPENINGS,
    VALUE,
    "0x" + "a1" * 32,
    "word",
    " ",
    "\n",
    '"',
    "'",
    "=",
    "\\n",
])


def starts_of(text: str) -> list[int]:
    """Return where rules match in a text, also within another match."""
    data = text.encode()
    starts: list[int] = []
    while (match := PLACE.search(data, starts[-1] + 1 if starts else 0)) is not None:
        starts.append(match.start())
    return starts


def starts_with_head(text: str, start: int) -> bool:
    return any(heads.match(text.encode(), start) for heads in RULES.heads)


def test_there_is_an_opening_for_each_rule():
    grouped = compile_re2(RULES.pattern)
    names = {index: name for name, index in grouped.groupindex.items() if name != b"word"}
    texts = [f"it {opening}{VALUE}' there".encode() for opening in OPENINGS]
    matches = [grouped.match(text, start) for text in texts for start in starts_of(text.decode())]
    assert {names[match.lastindex] for match in matches} == set(names.values())


@pytest.mark.parametrize("opening", OPENINGS)
def test_every_match_starts_with_a_head(opening: str):
    text = f"it {opening}{VALUE}' there"
    assert all(starts_with_head(text, start) for start in starts_of(text))


@given(st.lists(PIECES, max_size=10).map("".join))
def test_a_match_starts_with_a_head_whatever_surrounds_it(text: str):
    assert all(starts_with_head(text, start) for start in starts_of(text))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_that_is_switched_off_keeps_the_group_numbers(family: str):
    without = compile_re2(rule_set(frozenset((family,))).pattern).groupindex
    assert without == compile_re2(RULES.pattern).groupindex


def test_every_rule_says_what_it_catches_and_has_a_group_of_its_name():
    names = [name for rules in FAMILIES.values() for name in rules]
    lines = (RULES_FOLDER / "patterns.txt").read_text().splitlines()
    assert all(any(line.startswith(f"== {name}: ") for line in lines) for name in names)
    assert all(f"(?P<{name}>" in load_pattern(name) for name in names)
    assert len(set(names)) == len(names)
