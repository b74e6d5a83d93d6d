"""Secret commands: values that are secret because of the command or flag they stand behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lore.text import secret_values
from lore.text.later import compile_later
from lore.text.secret_fitting import (
    DIGIT,
    Span,
    chosen,
    fits,
    is_named_password,
    is_plain_secret,
    is_striking,
    told,
)
from lore.text.secret_names import NameKind, classify
from lore.text.secret_reading import QUOTE, match_four_by_four, read_value

__all__ = ["COMMANDS", "COMMAND_HEADS", "JUDGES", "LINE_CHARS", "cookies"]

LINE_CHARS = 500
"""So far back a command is looked for on the line of its flag."""

_WORDS = (
    r"passw(?:or)?d|passphrase|passcode|pass|pwd|secret|token|key|credentials?|creds|jwt|psk"
    r"|auth|pat"
)
_PIPED_INTO = (
    r"--(?:password|token|secret|key)-stdin|--with-token|--stdin|chpasswd"
    r"|\|[ \t]*(?:sudo[ \t]+)?passwd\b|sudo[ \t]+-S"
    r"|cryptsetup|secrets?[ \t]+(?:set|create|add|put)|env[ \t]+add|smbpasswd|kinit|gpg[ \t]"
    r"|docker[ \t]+secret[ \t]|versions[ \t]+add|\|[ \t]*convertto-securestring|\|[ \t]*base64\b"
)
_POSITIONAL = (
    r"cargo[ \t]+login|snyk[ \t]+auth|vault[ \t]+login|(?:ngrok|localtunnel)[ \t]+(?:config[ \t]+)?"
    r"(?:add-)?authtoken|doctl[ \t]+auth[ \t]+init[ \t]+-t|glab[ \t]+auth[ \t]+login[ \t]+-t"
    r"|codecov[ \t][^\n]{0,40}-t|wandb[ \t]+login(?:[ \t]+--relogin)?|netlify[ \t][^\n]{0,40}--auth"
    r"|(?:net|dscl)[ \t]+user[ \t]+\S{1,40}|net[ \t]+use[ \t][^\n]{1,80}/user:\S{1,60}"
    r"|rabbitmqctl[ \t]+(?:add_user|change_password)[ \t]+\S{1,40}"
    r"|htpasswd[ \t]+-\w*b\w*[ \t]+\S{1,80}[ \t]+\S{1,40}"
    r"|(?:poetry|composer)[ \t]+config[ \t][^\n]{0,30}http-basic\.\S{1,40}[ \t]+\S{1,40}"
    r"|poetry[ \t]+config[ \t]+pypi-token\.\S{1,40}|config[ \t]+set[ \t]+\S{0,80}_?auth_?token"
    r"|pulumi[ \t]+config[ \t]+set[ \t]+--secret[ \t]+\S{1,60}"
    r"|bw[ \t]+(?:login[ \t]+\S{1,60}|unlock)"
    r"|mc[ \t]+alias[ \t]+set[ \t]+\S{1,40}[ \t]+\S{1,80}[ \t]+\S{1,60}"
    r"|runas[ \t][^\n]{0,60}/user:\S{1,40}|net[ \t]+use[ \t]+\S{1,3}[ \t]+\\+\S{1,60}"
    r"|rclone[ \t][^\n]{0,60}[ \t]pass|mysqladmin[ \t][^\n]{0,60}[ \t]password"
    r"|adb[ \t]+shell[ \t]+input[ \t]+text|set-initial-password|auth[ \t]+default"
    r"|(?:isakmp|tacacs-server|radius-server[^\n]{0,60}"
    r"|server[ \t]\S{1,40})[ \t]+key(?:[ \t]+[0-9])?"
    r"|enable[ \t]+(?:secret|password)(?:[ \t]+(?:level[ \t]+\d+|\d))?"
    r"|username[ \t]+\S+(?:[ \t]+privilege[ \t]+\d+)?[ \t]+(?:secret|password)(?:[ \t]+\d)?"
    r"|pre-shared-(?:key|secret)(?:[ \t]+(?:local|remote|ascii-text|ascii|\d))*"
    r"|authentication-key(?:[ \t]+\d)?|auth[ \t]+(?:sha|md5)[\w\-]*"
    r"|priv[ \t]+(?:aes|3?des)[\w\-]*(?:[ \t]+\d{3})?"
    r"|mosquitto_passwd[ \t]+-\w*b\w*[ \t]+\S+[ \t]+\S+|htpasswd[ \t]+-\w*n\w*[ \t]+\S+"
    r"|message-digest-key[ \t]+\d+[ \t]+md5(?:[ \t]+[0-9])?|key-string(?:[ \t]+[0-9])?"
    r"|option[ \t]+key|-setcookie|key[ \t]+content[ \t]*:|snmp\w{3,8}[ \t][^\n]{0,80}[ \t]-c"
    r"|signtool[ \t][^\n]{0,80}/p|:[ \t]+(?:plain|eap|xauth)"
    r"|requirepass|masterauth|/rp|wpa_passphrase[ \t]+\S{1,40}"
    r"|(?:openssl|nuget[ \t]+push)[ \t][^\n]{0,80}[ \t]-k|ssh-keygen[ \t][^\n]{0,80}[ \t]-N"
)
_GLUED_TO = (
    r"(?:smbclient|rpcclient|crackmapexec|net)[ \t][^\n]{0,120}-U[ \t]*['\"]?[\w.\\\-]{1,40}%"
    r"|lftp[ \t][^\n]{0,80}-u[ \t]*['\"]?[\w.\-@]{1,40},|xfreerdp[ \t][^\n]{0,120}/p:"
    r"|sqlplus[ \t][^\n/]{0,60}/|winrs[ \t][^\n]{0,80}-p:|/pass:"
    r"|setuser[ \t]+\S{1,40}[ \t]+on[ \t]+>"
    r"|user[ \t]+\S{1,40}[ \t]+on[ \t]+>|\*:\*:[^:\s]{1,20}:[^:\s]{1,20}:|static:[\w.@\-]{1,40}:"
    r"|(?:impacket-\w+|\w+exec\.py|secretsdump(?:\.py)?)[ \t][^\n:]{0,60}:"
    r"|(?:password|pass|secret|token)[\w\-]{0,12}(?:=|[ \t]+)[\"']?(?:<\()?echo[ \t]+"
)
_STORED = (
    r"(?:secrets?|keyvault|parameter|variable|env)[ \t]+(?:set|create|add|put)\b[^\n|]{0,120}"
    r"[ \t](?:--body|--value|-b|-v|--plaintext)|put-(?:parameter|secret-value)\b[^\n|]{0,120}"
    r"[ \t](?:--value|--secret-string)"
)
COMMANDS = (
    r"(?P<user>[ \t](?:-[uaU][ \t]*|--(?:user|auth|proxy-user|creds|login)(?:[ \t]+|=))"
    rf"{QUOTE}?[^\s:\"'`]*:)(?:[^/\s]|[ \t])"
    rf"|(?P<flag>(?:(?:^|[\s\"'`,\[])--?[A-Za-z][\w\-]*(?:{_WORDS})[\w\-]*"
    rf"|(?:^|[\s\"'`,\[])(?:--(?:pw|{_WORDS})|-(?:{_WORDS}))[\w\-]*"
    rf"|\b(?:env|setx|setenv|set[ \t]+-\w+|config(?:ure)?[ \t]+set"
    rf"|con(?:nection)?[ \t]+modify[ \t]\S+)[ \t]+[\w.:\-]*(?:{_WORDS})[\w.]*"
    rf"|login[ \t]+\S+\s+password|secure-?string(?:[ \t]+-string)?){QUOTE}?,?[ \t]+)"
    r"|(?P<short>[ \t]['\"]?-(?:pw|hp|p|a|w|x)[ \t]*|\bpass(?:in|out)?[ \t]+pass:"
    r"|:(?:5432|5433|6432):[^:\s]+:[^:\s]+:|identified[ \t]+by[ \t]+['\"])"
    rf"|(?P<positional>(?:^|[^\w\-])(?:(?:{_POSITIONAL})[ \t]+|{_GLUED_TO})"
    r"|\d>[ \t]*auth(?:[ \t]+default)?[ \t]+|\]:\d{2,5}[ \t]+[\w.@+\-]{1,60}:"
    r"|/v[ \t]+\w*passw\w*[ \t][^\n]{0,30}/d[ \t]+"
    r"|\"[ \t]+\*[ \t]+\"|(?:^|\n|\xe2\x86\x92)\"[\w.@\-]+\"[ \t]+\")"
    rf"|(?P<stored>\b(?:{_STORED})(?:[ \t]+|=))"
    rf"|(?P<piped>{_PIPED_INTO})"
    r"|(?P<keyword>\binput[ \t](?:password|text|secret)[ \t]{2,}"
    r"[^ \t\n]*(?:passw|pwd|secret|token)[^ \t\n]*[ \t]{2,})"
    rf"|(?P<sent>assword:?[*\"']{{0,3}}(?:\s|\\+n|[{{;}}]){{0,8}}send(?:[ \t]+--)?[ \t]+){QUOTE}"
    r"|(?P<jar>[ \t](?:-b|--cookie)(?:[ \t]+|=))"
)
"""Where a value stands behind a command; each group has its judge below."""

COMMAND_HEADS = (
    r"[ \t](?:-[ua][ \t]*|--(?:user|auth|proxy-user|creds|login)(?:[ \t]+|=))"
    rf"{QUOTE}?[^\s:\"'`]*:"
    rf"|(?:^|[\s\"'`,\[])--?[\w\-]*(?:pw|{_WORDS})"
    r"|\b(?:env|setx|setenv|set[ \t]+-\w+|config(?:ure)?[ \t]+set"
    rf"|con(?:nection)?[ \t]+modify[ \t]\S+)[ \t]+[\w.:\-]*(?:{_WORDS})"
    r"|login[ \t]+\S+\s+password|secure-?string"
    r"|[ \t]['\"]?-(?:pw|hp|p|a|w|x)|\bpass(?:in|out)?[ \t]+pass:|:(?:5432|5433|6432):"
    r"|identified[ \t]+by[ \t]"
    r"|(?:^|[^\w\-])(?:(?:cargo|snyk|vault|ngrok|localtunnel|doctl|glab|codecov|wandb|netlify|dscl"
    r"|net|rabbitmqctl|htpasswd|poetry|composer|pulumi|bw|mc|runas|rclone|mysqladmin|adb|enable"
    r"|username|priv|mosquitto_passwd|message-digest-key|signtool|openssl|nuget|ssh-keygen"
    r"|smbclient|rpcclient|crackmapexec|lftp|xfreerdp|sqlplus|winrs|setuser|wpa_passphrase)[ \t]"
    r"|config[ \t]+set[ \t]|set-initial-password|auth[ \t]+(?:default|sha|md5)|isakmp"
    r"|tacacs-server|radius-server|server[ \t]\S+[ \t]+key|pre-shared-|authentication-key"
    r"|key-string|option[ \t]+key|-setcookie|key[ \t]+content|snmp\w|:[ \t]+(?:plain|eap|xauth)"
    r"|requirepass|masterauth|/rp|/pass:|user[ \t]+\S+[ \t]+on[ \t]+>|\*:\*:|static:|impacket-"
    r"|\w+exec\.py|secretsdump"
    r"|(?:password|pass|secret|token)[\w\-]*(?:=|[ \t]+)[\"']?(?:<\()?echo[ \t])"
    r"|\d>[ \t]*auth|\]:\d{2,5}[ \t]|/v[ \t]+\w*passw|\"[ \t]+\*[ \t]+\""
    r"|(?:^|\n|\xe2\x86\x92)\"[\w.@\-]+\"[ \t]+\""
    r"|\b(?:secrets?|keyvault|parameter|variable|env)[ \t]+(?:set|create|add|put)\b"
    rf"|\bput-(?:parameter|secret-value)\b|{_PIPED_INTO}"
    r"|\binput[ \t](?:password|text|secret)[ \t]{2}"
    r"|assword:?[*\"']*(?:\s|\\+n|[{;}])*send|[ \t](?:-b|--cookie)(?:[ \t]|=)"
)
"""How each of these begins."""

_CURL = compile_later(
    rb"\b(?:curl|wget|https?|xh|ab|hey|lftp|etcdctl|aria2c|skopeo|influx)\b[^\n]*$"
)
_LONE_ACCOUNT = compile_later(rb"([\w+/=\-]{16,}):$")
_ACCOUNT_BYTES = 128
"""Some services take their key for the account, and no password."""

_GLUED = compile_later(rb"\b(?:mysql\w*|mariadb\w*|mycli|7z|7za|rar|unrar)\b[^\n]*$")
_SHORT_COMMANDS = {
    b"-p": compile_later(
        rb"\b(?:(?:sshpass|mongo\w*|cqlsh|sqlcmd|psexec|clickhouse-client|nmap|xmpp|rdesktop"
        rb"|evil-winrm"
        rb"|crackmapexec|nxc|netexec|smbmap|cypher-shell|altool|notarytool|security|certutil"
        rb"|usermod"
        rb"|ldapmodify|impacket-\w+|vncdo|kafkacat|proxychains|sshuttle|rpcclient)\b"
        rb"|(?:docker|podman|helm|az|oc|skopeo|buildah|crane|registry|nerdctl)\b[^\n]*\blogin\b"
        rb"|twine[ \t]+upload\b)[^\n]*$"
    ),
    b"-a": compile_later(rb"\b(?:redis|valkey|keydb)-cli\b[^\n]*$"),
    b"-A": compile_later(rb"\bsnmp\w+\b[^\n]*$"),
    b"-X": compile_later(rb"\bsnmp\w+\b[^\n]*$"),
    b"-w": compile_later(rb"\bldap\w+\b[^\n]*$"),
    b"-P": compile_later(
        rb"\b(?:zip|unzip|security|pkcs12|sqlcmd|bcp|ipmitool|mosquitto_\w+|osql|tsql)\b[^\n]*$"
    ),
    b"-pw": compile_later(rb"\b(?:plink|pscp|putty|psftp)\b[^\n]*$"),
}
_WITH_USER = compile_later(
    rb"[ \t](?:-[ulU]|--user(?:name)?)[ =]?\S+|\b(?:user(?:add|mod)|rar|veracrypt)\b"
)
_ECHO = compile_later(
    rb"\b(?:echo|printf|print)[ \t]+(?:-\w+[ \t]+|\\*['\"]%s(?:\\+n)?\\*['\"][ \t]+)?"
    rb"(?=[^|\n]+\|[^\n]*$)"
)
_SHELL_TEXT = compile_later(rb"(?=([\"'])[^\"'|\n]{4,80}\1[ \t]*$)")
"""PowerShell pipes a text by itself."""

_ENTRIES = compile_later(
    rb":(?:\s|\\+n|\d{1,6}\xe2\x86\x92)*(?:list|users):(?:\s|\\+n|\d{1,6}\xe2\x86\x92|[|>\-])*"
    rb"(?=[\w.\-]{1,40}:)"
)
"""The accounts that a machine sets up when it first starts."""

_FED = compile_later(rb"[^|\n]{0,60}<<<[ \t]*")
_COOKIE = compile_later(rb"([^\s=:;,\"'\\{]+)(?:=|\\*[\"']:[ ]?\\*[\"'])([^\s;,\"'\\}]+)")
_COOKIE_WORDS = frozenset((b"path", b"domain", b"expires", b"max-age", b"samesite", b"priority"))


def cookies(data: bytes, at: int) -> Iterator[Span]:
    """Judge the values of a Cookie header one by one; their names are kept."""
    end = data.find(b"\n", at, at + LINE_CHARS)
    end = min(len(data), at + LINE_CHARS) if end < 0 else end
    for pair in _COOKIE.finditer(data[at:end]):
        value = pair.group(2)[:256].decode("utf-8", "replace")
        if pair.group(1).lower() in _COOKIE_WORDS:
            continue
        if secret_values.is_random(value, least=8):
            yield at + pair.start(2), at + pair.end(2), "cookie"
        elif b"\\n" in data[at + pair.end() : at + pair.end() + 2]:
            return


def _flag(data: bytes, found: Any, at: int) -> Iterator[Span]:
    words = found.group().split()
    if words[-1].endswith(b"-stdin"):
        yield from _piped(data, found, at)
        return
    name = words[-1].strip(b"\"'`,[-").decode("latin-1")
    secure = "tring" in name
    kind: NameKind = "password" if secure else classify(name)
    value = read_value(data, at)
    if not kind or value.text.startswith("-"):
        return
    if value.text.startswith("pass:"):
        value = read_value(data, value.start + len("pass:"))
    if kind == "password" and (apart := match_four_by_four(data, value.start)):
        yield *apart.span(), told(kind)
        return
    convincing = DIGIT.search(value.text) or is_striking(value.text)
    if not value.quoted and not convincing:
        return
    if fits(kind, value.text, bare=not value.quoted):
        yield value.start, value.end, told(kind)


def _line_before(data: bytes, found: Any) -> bytes:
    return data[max(0, found.start() - LINE_CHARS) : found.start()]


def _user(data: bytes, found: Any, at: int) -> Iterator[Span]:
    if not _CURL.search(_line_before(data, found)):
        return
    if data[at : at + 1] in (b" ", b"\t", b'"', b"'"):
        account = _LONE_ACCOUNT.search(data, max(0, at - _ACCOUNT_BYTES), at)
        if account and secret_values.is_random(account.group(1).decode("latin-1"), least=16):
            yield *account.span(1), "secret"
        return
    yield from chosen(read_value(data, at, whole_line=True), "password")


def _short(data: bytes, found: Any, at: int) -> Iterator[Span]:
    flag = found.group().strip(b" \t\"'")
    value = read_value(data, at, whole_line=True)
    if not flag.startswith(b"-"):
        yield from chosen(value, "password")
        return
    line = _line_before(data, found)
    command = _SHORT_COMMANDS.get(flag)
    glued = flag == b"-p" and found.group().endswith(flag) and _GLUED.search(line)
    if glued or (command is not None and command.search(line)):
        yield from chosen(value, "password")
    elif (
        flag in (b"-p", b"-P", b"-hp")
        and _WITH_USER.search(line)
        and not _GLUED.search(line)
        and is_named_password(value.text)
    ):
        yield value.start, value.end, "password"


def _positional(data: bytes, found: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at, whole_line=True)
    cut = value.text.find("@") if data[at - 1 : at] == b"/" else -1
    text = value.text[:cut] if cut > 0 else value.text
    convincing = DIGIT.search(text) or is_striking(text)
    if found.group().endswith(b'"'):
        convincing = is_named_password(text)
    if convincing and not text.startswith("-") and fits("password", text, bare=False):
        end = value.start + len(text.encode()) if cut > 0 else value.end
        yield value.start, end, "password"


def _given(data: bytes, found: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at, whole_line=True)
    text = value.text.rpartition(":")[2]
    if found.group().lower().endswith(b"base64") and not is_plain_secret(text):
        return
    if fits("password", text, bare=False) or is_plain_secret(text):
        yield value.end - len(text.encode()), value.end, "password"


def _piped(data: bytes, found: Any, at: int) -> Iterator[Span]:
    if fed := _FED.match(data, at, at + 80):
        yield from _given(data, found, fed.end())
        return
    low = max(0, found.start() - LINE_CHARS)
    low = max(low, data.rfind(b"\n", low, found.start()))
    if entries := _ENTRIES.match(data, at, at + 80):
        yield from _given(data, found, entries.end())
    echo = _ECHO.search(data, low, found.start()) or _SHELL_TEXT.search(data, low, found.start())
    if echo is not None:
        yield from _given(data, found, echo.end())


def _jar(data: bytes, found: Any, at: int) -> Iterator[Span]:
    if _CURL.search(_line_before(data, found)):
        value = read_value(data, at, whole_line=True)
        yield from (span for span in cookies(data, at) if span[1] <= value.end)


def _sent(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    """Judge what a script answers to a prompt."""
    value = read_value(data, at)
    text = value.text.removesuffix("\\n").removesuffix("\\r")
    if fits("password", text, bare=False):
        yield value.start, value.start + len(text.encode()), "password"


def _keyword(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at, whole_line=True)
    if is_named_password(value.text):
        yield value.start, value.end, "password"


JUDGES: dict[str, Callable[[bytes, Any, int], Iterator[Span]]] = {
    "flag": _flag, "user": _user, "short": _short, "positional": _positional, "stored": _given,
    "piped": _piped, "jar": _jar, "keyword": _keyword, "sent": _sent,
}  # fmt: skip
