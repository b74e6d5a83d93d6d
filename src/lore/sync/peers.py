"""Peers: the other side of a sync, over HTTP or over the pipes of an ssh process."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, NoReturn, Protocol
from urllib.parse import quote, urlsplit

import httpx2
import orjson

from lore import telemetry
from lore.errors import InvalidInput, LoreError, PeerUnreachable, SyncError
from lore.lazy_dataclass import dataclass
from lore.llm.http_client import ResponseTooLarge, open_client
from lore.proxy.address import API_PREFIX, LOOPBACK_HOSTS
from lore.records import SyncIdentity
from lore.sync.replica import ChangePage
from lore.sync.wire_format import FORMAT, LONGEST_PAGE, OLDEST_FORMAT

_HTTP_S = 120.0
"""A page of records is applied within seconds; the first look at a large home takes longer."""

_SSH_ALIVE = ("-o", "ConnectTimeout=30", "-o", "ServerAliveInterval=15")
"""A host that does not answer, and a connection that is dead, are given up within a minute."""

_HELLO = "lore_sync"
_MOST_GREETING_LINES = 200
"""Lines that a login shell may print before Lore answers."""

_LONGEST_GREETING = 100_000

_OK, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _TOO_LARGE = 200, 401, 403, 404, 413


_HTTP = ("http://", "https://")


class Peer(Protocol):
    """The other side of a sync."""

    name: str

    def describe(self, *, state_hash: bool = False) -> SyncIdentity:
        """Return who it is, after it looked for its own changes."""

    def changes(self, cursor: str, machine: str) -> ChangePage:
        """Return what changed there after a cursor, except what a machine brought."""

    def push(self, records: Sequence[Any], machine: str) -> int:
        """Send records of a machine; return how many of them changed something there."""


@dataclass(frozen=True, slots=True)
class PeerOptions:
    """How peers are reached: the access key of a server, and the commands for ssh."""

    access_key: str = ""
    ssh: str = "ssh"
    remote: str = "lore"
    insecure: bool = False


def peer_name(target: str) -> str:
    """Return the name of the peer that a target names, the same for all spellings of it."""
    if target.startswith(_HTTP):
        return target.rstrip("/")
    if target.startswith("ssh://") or target.endswith(":"):
        host, port = _split_host(target)
        return f"ssh://{host}:{port}" if port else f"{host}:"
    msg = f"'{target}' is neither an address nor a host: 'https://…', 'HOST:' or 'ssh://HOST'."
    raise InvalidInput(msg, hint="For a file: 'lore sync --to FILE' or 'lore sync --from FILE'.")


@contextmanager
def open_peer(name: str, options: PeerOptions) -> Iterator[Peer]:
    """Open the peer of a name."""
    opened: AbstractContextManager[Peer] = (
        _open_http(name, options) if name.startswith(_HTTP) else _open_ssh(name, options)
    )
    with opened as peer:
        yield peer


def _identity(fields: Any) -> SyncIdentity:
    """Return what a peer says of itself; refuse one that speaks another format."""
    names = ("machine", "epoch", "version", "state_hash")
    if not isinstance(fields, dict) or not all(isinstance(fields.get(n), str) for n in names):
        msg = "The other side does not answer as a Lore that can sync."
        raise SyncError(msg, hint="Upgrade it: 'lore upgrade' there prints how.")
    newest = fields.get("format")
    oldest = fields.get("oldest_format", newest)
    if not isinstance(newest, int) or not isinstance(oldest, int):
        msg = "The other side does not say by which format it syncs."
        raise SyncError(msg, hint="Upgrade it: 'lore upgrade' there prints how.")
    if oldest > FORMAT or newest < OLDEST_FORMAT:
        who = "This Lore" if oldest > FORMAT else "The other side"
        msg = f"{who} is too old: it syncs by format {min(newest, FORMAT)}, the other by a newer."
        raise SyncError(msg, hint="Upgrade it; nothing is lost until then.")
    return SyncIdentity(
        **{name: fields[name] for name in names}, format=newest, oldest_format=oldest
    )


def _page(fields: Any) -> ChangePage:
    try:
        records, cursor, more = fields["records"], fields["cursor"], fields["more"]
    except (KeyError, TypeError) as error:
        msg = "The other side sent no page of changes."
        raise SyncError(msg) from error
    if not isinstance(records, list) or not isinstance(cursor, str):
        msg = "The other side sent an invalid page of changes."
        raise SyncError(msg)
    return ChangePage(records, cursor, bool(more))


@contextmanager
def _open_http(url: str, options: PeerOptions) -> Iterator[HttpPeer]:
    parts = urlsplit(url)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK_HOSTS and not options.insecure:
        msg = f"{url} is not encrypted: everybody on the way could read the memory and the key."
        raise SyncError(
            msg, hint="Use https or ssh; 'lore config sync.insecure on' allows it anyway."
        )
    if not options.access_key:
        msg = f"Sync with {url} needs an access key."
        raise SyncError(
            msg,
            hint=_NEW_KEY,
        )
    client = open_client(url, _HTTP_S, max_bytes=LONGEST_PAGE)
    try:
        yield HttpPeer(client, url, options.access_key)
    finally:
        client.close()


class HttpPeer:
    """A server of Lore."""

    def __init__(self, client: httpx2.Client, url: str, access_key: str) -> None:
        self._client = client
        self._headers = {"authorization": f"Bearer {access_key}"}
        self.name = url

    def describe(self, *, state_hash: bool = False) -> SyncIdentity:
        """Return who the server is."""
        return _identity(self._send("GET", f"/sync?state_hash={str(state_hash).lower()}"))

    def changes(self, cursor: str, machine: str) -> ChangePage:
        """Return a page of the server's changes."""
        query = f"?machine={quote(machine)}&cursor={quote(cursor)}"
        return _page(self._send("GET", f"/changes{query}"))

    def push(self, records: Sequence[Any], machine: str) -> int:
        """Send records to the server."""
        result = self._send("POST", "/push", {"machine": machine, "records": list(records)})
        return int(result.get("changed", 0))

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        content = None if body is None else orjson.dumps(body)
        headers = self._headers | ({"content-type": "application/json"} if content else {})
        headers |= telemetry.trace_headers()
        try:
            response = self._client.request(
                method, f"{self.name}{API_PREFIX}{path}", content=content, headers=headers
            )
        except ResponseTooLarge as error:
            raise _too_long(self.name) from error
        except httpx2.HTTPError as error:
            msg = f"{self.name} cannot be reached: {type(error).__name__}."
            raise PeerUnreachable(msg, hint=_OFFLINE) from error
        if response.status_code != _OK:
            self._refuse(response.status_code, response.content)
        try:
            return orjson.loads(response.content)
        except orjson.JSONDecodeError as error:
            msg = f"{self.name} does not answer as a server of Lore."
            raise SyncError(msg, hint="Is the address right?") from error

    def _refuse(self, code: int, content: bytes) -> NoReturn:
        try:
            problem = orjson.loads(content)
            detail = str(problem.get("detail", ""))
        except (orjson.JSONDecodeError, AttributeError):
            detail = ""
        if code == _UNAUTHORIZED:
            msg = f"{self.name} refuses the access key: it is wrong, expired or revoked."
            raise SyncError(msg, hint=_NEW_KEY)
        if code == _FORBIDDEN:
            msg = f"{self.name} refuses the access key: {detail or 'it may not sync.'}"
            raise SyncError(msg, hint=_NEW_KEY)
        if code == _NOT_FOUND:
            msg = f"{self.name} is no server of Lore, or an older one that cannot sync."
            raise SyncError(msg, hint="Is the address right? 'lore upgrade' there prints how.")
        if code == _TOO_LARGE:
            msg = f"A record is larger than {self.name} accepts."
            raise SyncError(msg, hint="Raise the setting server.max_body_bytes there.")
        msg = f"{self.name} answered {code}. {detail}".strip()
        raise (PeerUnreachable if code >= 500 or code == 429 else SyncError)(msg)


_NEW_KEY = (
    "There: 'lore key create NAME --scope read --scope write --scope push'."
    " Here: 'lore config sync.api_key KEY'."
)
_OFFLINE = "Nothing is lost: the next sync sends what waits."


def _too_long(name: str) -> SyncError:
    msg = f"{name} sent more than {LONGEST_PAGE:,} bytes at once: no Lore does that."
    return SyncError(msg, hint="Is the address right?")


@contextmanager
def _open_ssh(name: str, options: PeerOptions) -> Iterator[PipePeer]:
    host, port = _split_host(name)
    alive = _SSH_ALIVE if Path(shlex.split(options.ssh)[0]).name == "ssh" else ()
    command = [*shlex.split(options.ssh), *alive, *(("-p", port) if port else ()), "--", host,
               f"{options.remote} sync --stdio"]  # fmt: skip
    with tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(  # noqa: S603 - the person's own command and host
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints
            )
        except OSError as error:
            msg = f"'{command[0]}' cannot be started: {error.strerror}."
            raise SyncError(msg, hint="The setting sync.ssh names the command.") from error
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018 - both pipes

        def complaint() -> str:
            complaints.seek(0)
            lines = complaints.read(4_000).decode("utf-8", "replace").strip().splitlines()
            return lines[-1].strip() if lines else ""

        try:
            yield PipePeer(name, process.stdin, process.stdout, complaint)
        finally:
            _end(process)


def _split_host(target: str) -> tuple[str, str]:
    if not target.startswith("ssh://"):
        host, port = target.removesuffix(":"), ""
    else:
        try:
            parts = urlsplit(target)
            port = str(parts.port or "")
        except ValueError as error:
            msg = f"'{target}' is not an address for ssh."
            raise InvalidInput(msg, hint="Example: ssh://me@laptop:2222") from error
        host = parts.netloc.rpartition(":")[0] if port else parts.netloc
    if not host or host.startswith("-") or any(c.isspace() for c in host):
        msg = f"'{target}' names no host."
        raise InvalidInput(msg, hint="Examples: 'laptop:', 'me@laptop:', 'ssh://me@laptop:2222'.")
    return host, port


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class PipePeer:
    """A Lore at the other end of two pipes: one JSON line for each request and each response."""

    def __init__(
        self, name: str, requests: IO[bytes], responses: IO[bytes], complaint: Any = lambda: ""
    ) -> None:
        self.name = name
        self._requests = requests
        self._responses = responses
        self._complaint = complaint
        self._greeted = False

    def describe(self, *, state_hash: bool = False) -> SyncIdentity:
        """Return who the other side is."""
        return _identity(self._call("describe", state_hash=state_hash))

    def changes(self, cursor: str, machine: str) -> ChangePage:
        """Return a page of the other side's changes."""
        return _page(self._call("changes", cursor=cursor, machine=machine))

    def push(self, records: Sequence[Any], machine: str) -> int:
        """Send records to the other side."""
        result = self._call("push", records=list(records), machine=machine)
        return int(result.get("changed", 0))

    def _call(self, op: str, **arguments: Any) -> Any:
        try:
            if not self._greeted:
                self._await_greeting()
            self._requests.write(orjson.dumps({"op": op, **arguments}) + b"\n")
            self._requests.flush()
            raw = self._responses.readline(LONGEST_PAGE)
        except (BrokenPipeError, ConnectionError) as error:
            raise self._gone() from error
        if not raw.endswith(b"\n"):
            raise _too_long(self.name) if len(raw) >= LONGEST_PAGE else self._gone()
        try:
            answer = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            msg = f"{self.name} does not answer as a Lore that can sync."
            raise SyncError(msg) from error
        if "error" in answer:
            raise SyncError(f"{self.name} {answer['error']}", hint=str(answer.get("hint", "")))
        return answer.get("result")

    def _await_greeting(self) -> None:
        """Skip what a login shell prints before Lore speaks."""
        for _ in range(_MOST_GREETING_LINES):
            raw = self._responses.readline(_LONGEST_GREETING)
            if not raw:
                raise self._gone()
            if raw.startswith(b'{"' + _HELLO.encode()):
                self._greeted = True
                return
        msg = f"{self.name} prints too much before Lore answers."
        raise SyncError(msg, hint="Let its shell be silent if no person is logged in.")

    def _gone(self) -> PeerUnreachable:
        reason = self._complaint()
        msg = f"{self.name} ended the connection{f': {reason}' if reason else '.'}"
        hint = f"Try 'ssh {self.name.removesuffix(':')} lore --version'. {_OFFLINE}"
        return PeerUnreachable(msg, hint=hint)


class SyncService(Protocol):
    """The side that answers, over whatever transport."""

    def describe(self, *, state_hash: bool = False) -> SyncIdentity:
        """Return who this home is."""

    def changes(self, cursor: str = "", *, machine: str = "") -> Any:
        """Return a page of changes."""

    def receive(self, records: Sequence[Any], *, machine: str) -> Any:
        """Apply records of another machine."""


def serve_pipes(service: SyncService, requests: IO[bytes], responses: IO[bytes]) -> None:
    """Answer the requests of a `PipePeer` until its pipe ends."""
    responses.write(orjson.dumps({_HELLO: FORMAT}) + b"\n")
    responses.flush()
    while raw := requests.readline(LONGEST_PAGE):
        try:
            answer: dict[str, Any] = {"result": _answer(service, raw)}
        except LoreError as error:
            answer = {"error": str(error), "hint": error.hint}
        responses.write(orjson.dumps(answer, default=_plain) + b"\n")
        responses.flush()


def _plain(value: Any) -> Any:
    return value._asdict() if hasattr(value, "_asdict") else asdict(value)


def _answer(service: SyncService, raw: bytes) -> Any:
    try:
        request = orjson.loads(raw)
        op, machine = request["op"], request.get("machine", "")
        if op == "describe":
            return asdict(service.describe(state_hash=bool(request.get("state_hash"))))
        if op == "changes":
            return service.changes(request["cursor"], machine=machine)
        if op == "push":
            return {"changed": service.receive(request["records"], machine=machine).changed}
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        msg = "got a request that it does not understand."
        raise InvalidInput(msg) from error
    msg = "got a request of another version."
    raise InvalidInput(msg, hint="Upgrade the older one of the two.")
