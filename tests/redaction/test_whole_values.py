"""A value that is redacted is redacted whole, whatever symbols it has and however it is written."""

from __future__ import annotations

import json
import shlex
import string
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lore.redaction.redactor import Redactor

REDACTOR = Redactor(b"k" * 32)
PRINTABLE = string.ascii_letters + string.digits + string.punctuation
QUOTES = "\"'`"


def in_json(value: str) -> str:
    return json.dumps(value)


def in_single_quotes(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def as_is(value: str) -> str:
    return value


def in_url(value: str) -> str:
    return quote(value, safe="!$&*()_=+-.~")


NOTATIONS: dict[str, tuple[str, Callable[[str], str]]] = {
    "env": ("PORT=80\nDB_PASSWORD={}\nDEBUG=1\n", as_is),
    "env key": ("SECRET_KEY={}\n", as_is),
    "export": ("export DB_PASSWORD={}\n", shlex.quote),
    "yaml": ("db:\n  password: {}\n  port: 5432\n", as_is),
    "yaml in quotes": ("db:\n  password: {}\n", in_json),
    "json": ('{{"user": "app", "password": {}, "port": 1}}', in_json),
    "toml": ("[db]\npassword = {}\n", in_json),
    "ini": ("[client]\nuser = app\npassword = {}\n", as_is),
    "diff": ("@@ -1 +1 @@\n-DB_PASSWORD=\n+DB_PASSWORD={}\n", as_is),
    "diff of a key": ("+SECRET_KEY={}\n", as_is),
    "python": ("DB_PASSWORD = {}\n", in_json),
    "python argument": ("connect(user='app', password={})\n", in_json),
    "javascript": ("const dbPassword = {};\n", in_single_quotes),
    "url": ("DATABASE_URL=mysql://root:{}@db1:3306/shop\n", in_url),
    "option": ("app --user root --password {} --verbose\n", shlex.quote),
    "option with =": ("app --password={} --verbose\n", shlex.quote),
    "mysql": ("mysql -u root -p{} shop\n", shlex.quote),
}  # fmt: skip


def visible(notation: str, value: str) -> str:
    """Return what can still be read of a value; nothing if the text was left as it is."""
    text, write = NOTATIONS[notation]
    written = write(value)
    before, _, _after = text.format("\0").partition("\0")
    whole = text.format(written)
    spans = REDACTOR.find(whole)
    if not spans:
        return ""
    at = len(before)
    if written[:1] in QUOTES and write is not as_is:
        at, written = at + 1, written[1:-1]
    covered = {place for start, end, _ in spans for place in range(start, end)}
    return "".join(character for place, character in enumerate(written, at) if place not in covered)


@pytest.mark.parametrize("notation", NOTATIONS)
@given(
    value=st.text(PRINTABLE, min_size=8, max_size=50).filter(lambda value: value[0] not in QUOTES)
)
@example(value="_n@f-8%st8f&_%@z#45_zw#&5xdfzs#h*z+(5w@-n+cvsm8^zs")
@example(value="ab&cd3=x9&user=bob7")
@example(value="don't4Get'It")
@example(value='say"Fr1end"Now')
@example(value="back\\slash\\n7Xq")
@example(value="ends4With;")
def test_a_redacted_value_is_redacted_whole(notation: str, value: str):
    assert visible(notation, value) == ""


WEAK = ["letmein99", "admin1234", "qwerty12", "postgres1", "dragon2024", "monkey2024"]


@pytest.mark.parametrize("value", WEAK)
@pytest.mark.parametrize("notation", NOTATIONS)
def test_a_weak_password_after_a_clear_name_is_redacted(notation: str, value: str):
    text, write = NOTATIONS[notation]
    if "key" not in notation:
        assert value not in REDACTOR.redact(text.format(write(value)))


@pytest.mark.parametrize(
    "line",
    ["mysql://root:$ecR3tQx9Lp@db1/shop", "mysql -u root -p$ecR3tQx9Lp",
     '{"password": "maplewood"}', "mysql -u root -pwintermute shop",
     "  - user_pwd: nightingale\n", "ldap_bind_password: Stonehenge  # of the test system\n",
     "password: marigold  # of the test system\n", "  admin_passwd:   purpleturtle\n",
     "users:\n  - login: x\n    password: marigold\n", "passwd: marigold\nusername: ci\n",
     "db.password: marigold\n", "spring.datasource.password=marigold\n",
     "export A=1 RABBITMQ_DEFAULT_PASS=purpleturtle\n", "FTP_PASS=marigold ./migrate.sh --all\n",
     "restore --passwd=skywalker --host db2", "write --passwd marigold --user sa"],
)  # fmt: skip
def test_a_password_that_looks_like_a_variable_or_a_word_is_redacted(line: str):
    assert "[secret:" in REDACTOR.redact(line)


@pytest.mark.parametrize(
    "text",
    [
        "password:\n-----BEGIN CERTIFICATE-----\nMIIDazCCAlOgAwIBAgIUJX9zq3\n",
        "DB_PASSWORD=$DB_PASSWORD", "password = password1", "password: string;",
        "PWD=/home/app/src2", "mysql -u root -p$MYSQL_ROOT_PASSWORD",
        "pwd: /Users/ada/code/app2", "password: see 1Password",
        "user_password: Sensitive\n", "db_password: vault\n", "  - password: mandatory\n",
        "admin_password: prompt  # asks at start\n", "db_password: string\n", "ftp_pass: Buffer,\n",
        "db_password: marigold,\n", "db_password: marigold;\n", "tool --password=stdin",
        "tool --password=PASSWORD --user=USER", "PASSWORD=changeme docker compose up",
        "export PGHOST=db1 PGPASSWORD=$PGPASSWORD", "password: wrong\nuser: unknown, sorry\n",
    ],
)  # fmt: skip
def test_what_is_no_value_stays(text: str):
    assert REDACTOR.redact(text) == text
