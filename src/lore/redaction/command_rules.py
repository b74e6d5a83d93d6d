"""Command rules: secrets in command lines, flags, cookies, URLs and connection strings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lore.redaction import compile_bytes, load_pattern, value_checks
from lore.redaction.name_rules import NameKind, classify_name
from lore.redaction.password_shapes import (
    DIGIT,
    fits_kind,
    fits_setting,
    is_named_password,
    is_plain_secret,
    is_striking,
    judge_password,
    secret_kind,
)
from lore.redaction.value_reader import (
    Judge,
    Span,
    Value,
    match_app_password,
    read_url_password,
    read_value,
)
from lore.text.regex import compile_lazy

LINE_CHARS = 500
"""Characters to look back for the command of a flag."""

_PIPED_INTO = load_pattern("piped_into")
_POSITIONAL = load_pattern("positional")
_GLUED_TO = load_pattern("glued_to")
_STORED = load_pattern("stored")
_CURL = compile_lazy(
    rb"\b(?:curl|wget|https?|xh|ab|hey|lftp|etcdctl|aria2c|skopeo|influx)\b[^\n]*$"
)
_LONE_ACCOUNT = compile_lazy(rb"([\w+/=\-]{16,}):$")
_ACCOUNT_BYTES = 128
"""Some services take their key as the user name, without a password."""

_GLUED_COMMANDS = compile_lazy(rb"\b(?:mysql\w*|mariadb\w*|mycli|7z|7za|rar|unrar)\b[^\n]*$")
_SHORT_COMMANDS = {
    b"-p": compile_lazy(
        rb"\b(?:(?:sshpass|mongo\w*|cqlsh|sqlcmd|psexec|clickhouse-client|nmap|xmpp|rdesktop"
        rb"|evil-winrm"
        rb"|crackmapexec|nxc|netexec|smbmap|cypher-shell|altool|notarytool|security|certutil"
        rb"|usermod"
        rb"|ldapmodify|impacket-\w+|vncdo|kafkacat|proxychains|sshuttle|rpcclient)\b"
        rb"|(?:docker|podman|helm|az|oc|skopeo|buildah|crane|registry|nerdctl)\b[^\n]*\blogin\b"
        rb"|twine[ \t]+upload\b)[^\n]*$"
    ),
    b"-a": compile_lazy(rb"\b(?:redis|valkey|keydb)-cli\b[^\n]*$"),
    b"-A": compile_lazy(rb"\bsnmp\w+\b[^\n]*$"),
    b"-X": compile_lazy(rb"\bsnmp\w+\b[^\n]*$"),
    b"-w": compile_lazy(rb"\bldap\w+\b[^\n]*$"),
    b"-P": compile_lazy(
        rb"\b(?:zip|unzip|security|pkcs12|sqlcmd|bcp|ipmitool|mosquitto_\w+|osql|tsql)\b[^\n]*$"
    ),
    b"-pw": compile_lazy(rb"\b(?:plink|pscp|putty|psftp)\b[^\n]*$"),
}
_WITH_USER = compile_lazy(
    rb"[ \t](?:-[ulU]|--user(?:name)?)[ =]?\S+|\b(?:user(?:add|mod)|rar|veracrypt)\b"
)
_ECHO = compile_bytes("echo")
_SHELL_TEXT = compile_lazy(rb"(?=([\"'])[^\"'|\n]{4,80}\1[ \t]*$)")
"""PowerShell pipes a bare string."""

_CLOUD_INIT = compile_bytes("cloud_init")

_HERE_STRING = compile_lazy(rb"[^|\n]{0,60}<<<[ \t]*")
_COOKIE = compile_lazy(rb"([^\s=:;,\"'\\{]+)(?:=|\\*[\"']:[ ]?\\*[\"'])([^\s;,\"'\\}]+)")
_COOKIE_WORDS = frozenset((b"path", b"domain", b"expires", b"max-age", b"samesite", b"priority"))


def cookies(data: bytes, at: int) -> Iterator[Span]:
    """Yield the secret values of a Cookie header; their names stay."""
    end = data.find(b"\n", at, at + LINE_CHARS)
    end = min(len(data), at + LINE_CHARS) if end < 0 else end
    for pair in _COOKIE.finditer(data[at:end]):
        value = pair.group(2)[:256].decode("utf-8", "replace")
        if pair.group(1).lower() in _COOKIE_WORDS:
            continue
        if value_checks.is_random(value, least=8):
            yield at + pair.start(2), at + pair.end(2), "cookie"
        elif b"\\n" in data[at + pair.end() : at + pair.end() + 2]:
            return


def _judge_flag(data: bytes, match: Any, at: int) -> Iterator[Span]:
    words = match.group().split()
    if words[-1].endswith(b"-stdin"):
        yield from _judge_pipe(data, match, at)
        return
    if words[-1].startswith(b"-p") and _GLUED_COMMANDS.search(_line_before(data, match)):
        start = data.rfind(words[-1], 0, at) + len(b"-p")
        yield from judge_password(read_value(data, start, whole_line=True), "password")
        return
    name = words[-1].strip(b"\"'`,[-").decode("latin-1")
    secure = "tring" in name
    kind: NameKind = "password" if secure else classify_name(name)
    value = read_value(data, at)
    if not kind or value.text.startswith("-"):
        return
    if value.text.startswith("pass:"):
        value = read_value(data, value.start + len("pass:"))
    if kind == "password" and (apart := match_app_password(data, value.start)):
        yield *apart.span(), secret_kind(kind)
        return
    has_user = kind == "password" and bool(
        _WITH_USER.search(_line_before(data, match)) or _WITH_USER.search(_line_after(data, value))
    )
    convincing = DIGIT.search(value.text) or is_striking(value.text)
    if not value.quoted and not convincing and not has_user:
        return
    fits = fits_kind(kind, value.text, bare=not value.quoted) or fits_setting(
        kind, value.text, is_certain=has_user
    )
    if fits or value.quoted:
        yield value.start, value.end, secret_kind(kind) if fits else ""


def _line_before(data: bytes, match: Any) -> bytes:
    return data[max(0, match.start() - LINE_CHARS) : match.start()]


def _line_after(data: bytes, value: Value) -> bytes:
    return data[value.end : value.end + LINE_CHARS].partition(b"\n")[0]


def _judge_user(data: bytes, match: Any, at: int) -> Iterator[Span]:
    if not _CURL.search(_line_before(data, match)):
        return
    if data[at : at + 1] in (b" ", b"\t", b'"', b"'"):
        account = _LONE_ACCOUNT.search(data, max(0, at - _ACCOUNT_BYTES), at)
        if account and value_checks.is_random(account.group(1).decode("latin-1"), least=16):
            yield *account.span(1), "secret"
        return
    yield from judge_password(read_value(data, at, whole_line=True), "password")


def _judge_short_flag(data: bytes, match: Any, at: int) -> Iterator[Span]:
    flag = match.group().strip(b" \t\"'")
    if (
        flag == b"-pw"
        and data[at - 1 : at] == b"w"
        and _GLUED_COMMANDS.search(_line_before(data, match))
    ):
        flag, at = b"-p", at - 1
    value = read_value(data, at, whole_line=True)
    if not flag.startswith(b"-"):
        yield from judge_password(value, "password")
        return
    line = _line_before(data, match)
    command = _SHORT_COMMANDS.get(flag)
    glued = flag == b"-p" and data.endswith(flag, 0, at) and _GLUED_COMMANDS.search(line)
    if glued or (command is not None and command.search(line)):
        yield from judge_password(value, "password")
    elif (
        flag in (b"-p", b"-P", b"-hp")
        and _WITH_USER.search(line)
        and not _GLUED_COMMANDS.search(line)
        and is_named_password(value.text)
    ):
        yield value.start, value.end, "password"


def _judge_positional(data: bytes, match: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at, whole_line=True)
    cut = value.text.find("@") if data[at - 1 : at] == b"/" else -1
    text = value.text[:cut] if cut > 0 else value.text
    convincing = DIGIT.search(text) or is_striking(text)
    if match.group().endswith(b'"'):
        convincing = is_named_password(text)
    if convincing and not text.startswith("-") and fits_kind("password", text, bare=False):
        end = value.start + len(text.encode()) if cut > 0 else value.end
        yield value.start, end, "password"


def _judge_input(data: bytes, match: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at, whole_line=True)
    text = value.text.rpartition(":")[2]
    if match.group().lower().endswith(b"base64") and not is_plain_secret(text):
        return
    if fits_kind("password", text, bare=False) or is_plain_secret(text):
        yield value.end - len(text.encode()), value.end, "password"


def _judge_pipe(data: bytes, match: Any, at: int) -> Iterator[Span]:
    if here_string := _HERE_STRING.match(data, at, at + 80):
        yield from _judge_input(data, match, here_string.end())
        return
    low = max(0, match.start() - LINE_CHARS)
    low = max(low, data.rfind(b"\n", low, match.start()))
    if entries := _CLOUD_INIT.match(data, at, at + 80):
        yield from _judge_input(data, match, entries.end())
    echo = _ECHO.search(data, low, match.start()) or _SHELL_TEXT.search(data, low, match.start())
    if echo is not None:
        yield from _judge_input(data, match, echo.end())


def _judge_cookie_jar(data: bytes, match: Any, at: int) -> Iterator[Span]:
    if _CURL.search(_line_before(data, match)):
        value = read_value(data, at, whole_line=True)
        yield from (span for span in cookies(data, at) if span[1] <= value.end)


def _judge_expect(data: bytes, _match: Any, at: int) -> Iterator[Span]:
    """Judge the reply of an expect script to a prompt."""
    value = read_value(data, at)
    text = value.text.removesuffix("\\n").removesuffix("\\r")
    if fits_kind("password", text, bare=False):
        yield value.start, value.start + len(text.encode()), "password"


def _judge_keyword(data: bytes, _match: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at, whole_line=True)
    if is_named_password(value.text):
        yield value.start, value.end, "password"


_DSN = compile_lazy(rb"(?:^|[\s\"'=`])[A-Za-z][\w.\-]{0,32}:([^\s:/@\"'`<>\\]{4,64})$")
_DSN_BYTES = 100
"""Bytes to look back for the user of a DSN without a scheme."""


def _judge_query(data: bytes, _match: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at)
    if fits_kind("auth", value.text, bare=True):
        yield value.start, value.end, "secret"


def _judge_url(data: bytes, _match: Any, at: int) -> Iterator[Span]:
    value = read_url_password(data, at)
    if value is not None:
        yield from judge_password(value, "url-password")


def _judge_dsn(data: bytes, match: Any, _at: int) -> Iterator[Span]:
    end = match.start()
    password = _DSN.search(data, max(0, end - _DSN_BYTES), end)
    if password is None:
        return
    text = password.group(1).decode("utf-8", "replace")
    if is_striking(text):
        yield from judge_password(Value(password.start(1), end, text), "url-password")


def _judge_token_url(data: bytes, _match: Any, at: int) -> Iterator[Span]:
    end = data.index(b"@", at)
    if value_checks.is_random(data[at:end].decode("latin-1"), least=20):
        yield at, end, "url-password"


def _judge_escaped_url(data: bytes, match: Any, at: int) -> Iterator[Span]:
    end = match.end() - len(b"%40")
    yield from judge_password(Value(at, end, data[at:end].decode("latin-1")), "url-password")


COMMAND_RULES: dict[str, Judge] = {
    "user": _judge_user,
    "flag": _judge_flag,
    "short": _judge_short_flag,
    "positional": _judge_positional,
    "stored": _judge_input,
    "piped": _judge_pipe,
    "keyword": _judge_keyword,
    "sent": _judge_expect,
    "jar": _judge_cookie_jar,
}

URL_RULES: dict[str, Judge] = {
    "query": _judge_query,
    "url": _judge_url,
    "escaped": _judge_escaped_url,
    "lone": _judge_token_url,
    "dsn": _judge_dsn,
}
