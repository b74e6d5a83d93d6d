"""What does a request cost on its way through the gateway, against none and against LiteLLM?

The same requests go straight to an upstream on this machine, through the gateway of a real daemon
without and with memory, and through LiteLLM's proxy, in turns within one run. An upstream answers
with a stream of 100 events. Told for each: processor time of the proxy per request, time to the
first byte of the body above the direct way, and requests in a second with 1, 16 and 64 clients, for
bodies of 50 KB and 1 MB. Then a conversation grows by a turn with each request, from 50 KB on,
through the gateway without memory, with an empty memory, and with a filled one. The upstream
answers with what the next request has as its last response, as a model does. In five conversations
requests follow each other at once, and the median counts; in a sixth each waits until the gateway
has finished the work for the one before, and processor time is measured until the response is
complete, which the agent waits for, and after it, in the background. `--texts` takes the
conversation and the filled memory from a folder of evaluation data; `--embed` turns the embedder
on, which works in the background too. The filled memory is digested before, which takes some
minutes at 100,000 items; `--keep` keeps it for the next run. LiteLLM is installed into an
environment of its own; where that cannot be done, it is left out and the reason printed.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

from daemon import environment, wait_until
from latency_memory import Place, build
from lore.daemon.periodic_tasks import periodic_tasks
from lore.memory import Memory
from lore.proxy.address import find_address
from lore.settings import Settings

EVENTS = 100
SIZES = {"50 KB": 50_000, "1 MB": 1_000_000}
CLIENTS = (1, 16, 64)
MODEL = "claude-sonnet-4-5"
LITELLM = "litellm[proxy]==1.108.*"
LOOSENED = "certifi"
"""What LiteLLM asks for in a newer version than some registries have."""
STARTING_S = 180.0
KEY = f"sk-{secrets.token_hex(32)}"
"""LiteLLM does not start without one."""
PASSING, REMEMBERING, FILLED = "passing", "memory", "filled"
"""The gateway without memory, with an empty one, and with a filled one."""
GROWING_TURNS, CONVERSATIONS = 30, 5
TURN_HEADER = b"x-benchmark-turn:"
"""Names the turn of the conversation whose response the upstream is to send."""

LOOK_S, QUIET_LOOKS, BUSY_SHARE, MOST_QUIET_S = 0.05, 6, 0.02, 20.0
"""The gateway is quiet once it used less than this share of a processor at each of some looks."""

BACKGROUND = ("jobs", "digest")
"""Threads of the daemon that work through the sessions of a memory."""

QUIET = {
    "LORE_SERVER_PORT": "0",
    "LORE_CAPTURE_POLL_INTERVAL_S": "86400",
}


@dataclass(frozen=True)
class Way:
    """A way to the upstream: a port, and the process in between."""

    name: str
    port: int
    pid: int = 0


@dataclass(frozen=True)
class Exchange:
    """A turn of a conversation: the messages that a client adds, and the response of the model."""

    messages: list[Any]
    blocks: list[Any]


def events(blocks: list[Any], prompt_bytes: int = 50) -> list[bytes]:
    """Return the stream of a response, event by event; a text is cut to make up their number."""
    prompt_tokens = prompt_bytes // 4
    usage = {
        "input_tokens": prompt_tokens // 20,
        "cache_read_input_tokens": prompt_tokens * 19 // 20,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }
    begun: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
    }
    begun |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
    sent: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(blocks):
        empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        sent.append({"type": "content_block_start", "index": index, "content_block": empty})
        sent += [
            {"type": "content_block_delta", "index": index, "delta": delta}
            for delta in deltas(block, EVENTS - 3 - 3 * len(blocks))
        ]
        sent.append({"type": "content_block_stop", "index": index})
    reason = "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn"
    stop = {"stop_reason": reason, "stop_sequence": None}
    sent.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 400}})
    sent.append({"type": "message_stop"})
    return [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in sent]


def deltas(block: Any, count: int) -> Iterator[Any]:
    """Yield the pieces of a block."""
    if block["type"] == "tool_use":
        yield {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        return
    text, size = block["text"], max(1, len(block["text"]) // count)
    for start in range(0, len(text), size):
        yield {"type": "text_delta", "text": text[start : start + size]}


PLAIN = [{"type": "text", "text": "".join(f"word {n} of the answer " for n in range(EVENTS - 5))}]
"""What the upstream answers where no turn of a conversation is named."""


class Answering(asyncio.Protocol):
    """The upstream: reads requests by their length, and streams the response of their turn."""

    def __init__(self, exchanges: list[Exchange]) -> None:
        self._exchanges = exchanges
        self._data = bytearray()
        self._missing = -1
        self._answer: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request once it is whole."""
        if self._missing < 0:
            self._data += data
            head, ended, rest = bytes(self._data).partition(b"\r\n\r\n")
            if not ended:
                return
            self._data.clear()
            lines = head.lower().split(b"\r\n")
            length, turn = number_of(lines, b"content-length:"), number_of(lines, TURN_HEADER)
            blocks = self._exchanges[turn - 1].blocks if turn else PLAIN
            self._answer = events(blocks, length)
            self._missing = length - len(rest)
        else:
            self._missing -= len(data)
        if self._missing <= 0:
            self._missing = -1
            asyncio.get_running_loop().create_task(self._stream())

    async def _stream(self) -> None:
        self._transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
            b"transfer-encoding: chunked\r\nrequest-id: req_1\r\n\r\n"
        )
        for event in self._answer:
            self._transport.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
            await asyncio.sleep(0)
        self._transport.write(b"0\r\n\r\n")


def number_of(lines: list[bytes], name: bytes) -> int:
    """Return the number in a header, 0 without one."""
    return next((int(line[len(name) :]) for line in lines if line.startswith(name)), 0)


async def be_upstream(texts: Path | None) -> None:
    """Serve until the process is ended, and print the port."""
    exchanges = conversation(texts)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Answering(exchanges), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def messages_of(size: int) -> list[Any]:
    """Return messages of about so many bytes, in turns of a few KB."""
    lines, messages = "A line of a file that was read, with some words in it. " * 40, list[Any]()
    while len(json.dumps(messages)) < size:
        turn = f"Turn {len(messages)}: {lines}"
        messages.append({"role": "user", "content": turn})
        messages.append({"role": "assistant", "content": [{"type": "text", "text": turn}]})
    messages.append({"role": "user", "content": "Go on."})
    return messages


def request_of(messages: list[Any], session: str = "", turn: int = 0) -> bytes:
    """Return a request with these messages; a named session is the same in all its requests."""
    tree = {"model": MODEL, "max_tokens": 1024, "stream": True, "messages": messages}
    body = json.dumps(tree).encode()
    head = (
        "POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"x-api-key: {KEY}\r\nauthorization: Bearer {KEY}\r\nanthropic-version: 2023-06-01\r\n"
        f"accept: application/json\r\ncontent-length: {len(body)}\r\n"
    )
    if session:
        head += f"user-agent: claude-cli/2.0.0\r\nx-claude-code-session-id: {session}\r\n"
        head += f"{TURN_HEADER.decode()} {turn}\r\n"
    return f"{head}\r\n".encode() + body


def conversation(texts: Path | None) -> list[Exchange]:
    """Return the exchanges of a conversation; its first one is 50 KB long."""
    exchanges = real_exchanges(texts) if texts else made_up_exchanges()
    first: list[Any] = []
    while len(json.dumps(first)) < SIZES["50 KB"]:
        begun = next(exchanges)
        first += [*begun.messages, {"role": "assistant", "content": begun.blocks}]
    begun = next(exchanges)
    return [Exchange([*first, *begun.messages], begun.blocks), *islice(exchanges, GROWING_TURNS)]


def made_up_exchanges() -> Iterator[Exchange]:
    """Yield calls and results, and a prompt in every third turn."""
    for turn in count():
        lines = "A line of a file that was read, with some words in it. " * (40 if turn < 22 else 1)
        output = f"Line {turn} of the output of the build, with a path src/part_{turn}.py. " * 20
        call = {"type": "tool_use", "id": f"call-{turn}", "name": "Bash", "input": {"n": turn}}
        said = {"type": "text", "text": f"Step {turn}: look at part {turn} of the build. {lines}"}
        result = {"type": "tool_result", "tool_use_id": f"call-{turn}", "content": output}
        prompt = f"How did we change part {turn} of the build before?"
        yield Exchange([{"role": "user", "content": prompt}], [said, call])
        done = [{"type": "text", "text": f"Part {turn} is done."}]
        yield Exchange([{"role": "user", "content": [result]}], done)


def real_exchanges(texts: Path) -> Iterator[Exchange]:
    """Yield the exchanges of the longest coding session in a folder of evaluation data."""
    rows: list[Any] = []
    for path in sorted(texts.glob("coding-sessions*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows += map(json.loads, lines)
    longest = max(rows, key=lambda row: sum(len(turn[1]) for turn in row["turns"]))
    incoming: list[Any] = []
    blocks: list[Any] = []
    waiting: list[str] = []
    for number, (role, text, _) in enumerate(longest["turns"]):
        if role in {"user", "result"} and blocks:
            yield Exchange([{"role": "user", "content": incoming}], blocks)
            incoming, blocks = [], []
        if role == "tool":
            waiting.append(f"call-{number}")
            called = {"name": "Bash", "input": {"command": text}}
            blocks.append({"type": "tool_use", "id": waiting[-1], **called})
        elif role == "result" and waiting:
            result = {"tool_use_id": waiting.pop(0), "content": text}
            incoming.append({"type": "tool_result", **result})
        elif text.strip():
            told = incoming if role in {"user", "result"} else blocks
            told.append({"type": "text", "text": text})


def growing_requests(session: str, exchanges: list[Exchange]) -> Iterator[bytes]:
    """Yield the requests of a conversation."""
    messages: list[Any] = []
    for turn, exchange in enumerate(exchanges, start=1):
        messages += exchange.messages
        yield request_of(messages, session, turn)
        messages.append({"role": "assistant", "content": exchange.blocks})


class Client:
    """One connection, on which requests are sent one after the other."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.degraded = 0

    async def open(self) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()

    async def ask(self, request: bytes) -> float:
        """Send a request, read its answer to the end, and return the time to its first byte."""
        if self._reader.at_eof():  # It was idle for too long.
            await self.open()
        started = time.perf_counter()
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head[:300]
        first = await self._reader.readexactly(1)
        took = time.perf_counter() - started
        lowered = head.lower()
        self.degraded += b"x-lore-degraded" in lowered
        if b"chunked" in lowered:
            data = first
            while not data.endswith(b"0\r\n\r\n"):
                more = await self._reader.read(262_144)
                assert more
                data = data[-8:] + more
        return took


async def first_bytes(ways: list[Way], request: bytes, rounds: int) -> dict[str, Any]:
    """Return the time to the first byte in ms, asking all ways in turns: lower quartile, median.

    On a machine that does much else, the median is its scheduler's; the quartile is the proxy's.
    """
    clients = {way.name: Client(way.port) for way in ways}
    took: dict[str, list[float]] = {name: [] for name in clients}
    for client in clients.values():
        await client.open()
        for _ in range(3):
            await client.ask(request)
    for _ in range(rounds):
        for name, client in clients.items():
            took[name].append(await client.ask(request))
    for client in clients.values():
        await client.close()
    return {
        name: [round(cut * 1000, 2) for cut in statistics.quantiles(times, n=4)[:2]]
        for name, times in took.items()
    }


async def throughput(way: Way, request: bytes, clients: int, count: int) -> dict[str, float]:
    """Return requests in a second, and the processor time of the proxy for each."""
    left = iter(range(count))
    opened = [Client(way.port) for _ in range(clients)]
    await asyncio.gather(*(client.open() for client in opened))

    async def work(client: Client) -> None:
        for _ in left:
            await client.ask(request)

    spent, started = cpu_s(way.pid), time.perf_counter()
    await asyncio.gather(*(work(client) for client in opened))
    took = time.perf_counter() - started
    spent = cpu_s(way.pid) - spent
    await asyncio.gather(*(client.close() for client in opened))
    return {"per_s": round(count / took, 1), "cpu_ms": round(spent / count * 1000, 2)}


def cpu_s(pid: int) -> float:
    """Return the processor time of a process, to the nanosecond; 0 without one."""
    # The clock id of another process, as clock_getcpuclockid(3) makes it.
    return time.clock_gettime((~pid << 3) | 2) if pid else 0.0


async def settled_cpu_s(pid: int) -> float:
    """Return the processor time of a process once it does nothing more for a request."""
    before, quiet, began = cpu_s(pid), 0, time.monotonic()
    while quiet < QUIET_LOOKS and time.monotonic() - began < MOST_QUIET_S:
        await asyncio.sleep(LOOK_S)
        now = cpu_s(pid)
        quiet = quiet + 1 if now - before < BUSY_SHARE * LOOK_S else 0
        before = now
    return before


async def growing(way: Way, exchanges: list[Exchange]) -> dict[str, float]:
    """Return the processor time of a proxy per request of a growing conversation, and late ones."""
    client = Client(way.port)
    await client.open()
    await without_pauses(way, client, exchanges)  # The first one compiles and imports.
    together = statistics.median([
        await without_pauses(way, client, exchanges) for _ in range(CONVERSATIONS)
    ])
    asked, behind = [], []
    for request in growing_requests(secrets.token_hex(8), exchanges):
        start = await settled_cpu_s(way.pid)
        await client.ask(request)
        answered = cpu_s(way.pid)
        asked.append(answered - start)
        behind.append(await settled_cpu_s(way.pid) - answered)
    await client.close()
    figures = {
        "cpu_ms": together,
        "request_ms": statistics.fmean(asked[1:]),
        "background_ms": statistics.fmean(behind[1:]),
        "first_ms": asked[0] + behind[0],
    }
    return {name: round(s * 1000, 2) for name, s in figures.items()} | {"late": client.degraded}


async def without_pauses(way: Way, client: Client, exchanges: list[Exchange]) -> float:
    """Return the processor time per request if one follows the other at once."""
    first, *others = growing_requests(secrets.token_hex(8), exchanges)
    await client.ask(first)
    start = await settled_cpu_s(way.pid)
    for request in others:
        await client.ask(request)
    return (await settled_cpu_s(way.pid) - start) / len(others)


@contextmanager
def upstream_process(texts: Path | None) -> Iterator[Way]:
    """Run the upstream in a process of its own."""
    command = [sys.executable, __file__, "--upstream"]
    command += ["--texts", str(texts)] if texts else []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        yield Way("direct", int(process.stdout.readline()))
    finally:
        process.terminate()
        process.communicate()


def digest(home: Path) -> None:
    """Do the background work of a new memory, which a daemon would else do beside the requests."""
    with Memory.open(config=Settings(home=home, embed_provider="none")) as memory:
        tasks = [one for one in periodic_tasks(memory.settings) if one.thread in BACKGROUND]
        while any(one.run(memory, lambda: False).more for one in tasks):
            pass


def fill(home: Path, items: int, texts: Path | None, keep: Path | None) -> None:
    """Fill a home with a digested memory; `keep` is a folder that keeps it for the next run."""
    place = Place(keep or home.parent, items, 1, texts)
    digested = place.home / "digested"
    if not digested.exists():
        build(place)
        digest(place.home)
        digested.touch()
    shutil.copytree(place.home, home, dirs_exist_ok=True)


@contextmanager
def lore_process(name: str, home: Path, upstream: int, *, embeds: bool) -> Iterator[Way]:
    """Run a daemon whose gateway leads to the upstream, with memory or without."""
    variables = {
        "LORE_GATEWAY_ANTHROPIC_URL": f"http://127.0.0.1:{upstream}",
        "LORE_GATEWAY_MEMORY": str(name != PASSING).lower(),
        **QUIET,
    }
    if not embeds:
        variables["LORE_EMBED_PROVIDER"] = "none"
    process = subprocess.Popen(
        [sys.executable, "-m", "lore.cli", "up"],
        env={**environment(home.parent), **variables},
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: find_address(str(home)) is not None, STARTING_S)
        found = find_address(str(home))
        assert found
        yield Way(name, found.port, process.pid)
    finally:
        process.terminate()
        process.wait(30)


def install_litellm(folder: Path) -> str:
    """Install LiteLLM into an environment of its own; return what went wrong, or nothing."""
    loosened = folder / "loosened.txt"
    loosened.parent.mkdir(parents=True, exist_ok=True)
    loosened.write_text(f"{LOOSENED}\n")
    steps = [
        ["uv", "venv", "--quiet", "--no-config", "--clear", str(folder / "venv")],
        ["uv", "pip", "install", "--quiet", "--no-config", "--python",
         str(folder / "venv" / "bin" / "python"), "--overrides", str(loosened), LITELLM],
    ]  # fmt: skip
    if (folder / "venv" / "bin" / "litellm").exists():
        return ""
    for step in steps:
        try:
            done = subprocess.run(step, capture_output=True, text=True, check=False, timeout=900)
        except (OSError, subprocess.SubprocessError) as error:
            return f"{' '.join(step[:3])}: {error}"
        if done.returncode:
            return " ".join(done.stderr.split())[-300:]
    return ""


@contextmanager
def litellm_process(folder: Path, upstream: int) -> Iterator[Way]:
    """Run LiteLLM's proxy before the upstream."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = folder / "litellm.yaml"
    config.write_text(
        f"model_list:\n  - model_name: {MODEL}\n    litellm_params:\n"
        f"      model: anthropic/{MODEL}\n      api_key: sk-bench\n"
        f"      api_base: http://127.0.0.1:{upstream}\n"
    )
    told = {"LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    environ = {**os.environ, **told, "LITELLM_MASTER_KEY": KEY}
    log = (folder / "litellm.log").open("w")
    process = subprocess.Popen(
        [str(folder / "venv" / "bin" / "litellm"), "--config", str(config), "--host", "127.0.0.1",
         "--port", str(port), "--telemetry", "False"],
        env=environ, stdout=log, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        wait_until(lambda: process.poll() is not None or _listens(port), STARTING_S)
        assert process.poll() is None, (folder / "litellm.log").read_text()[-500:]
        yield Way("litellm", port, process.pid)
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


async def measure(ways: list[Way], rounds: int) -> dict[str, Any]:
    """Return all figures."""
    found: dict[str, Any] = {}
    for name, size in SIZES.items():
        request = request_of(messages_of(size))
        small = max(10, rounds // (1 if size < 100_000 else 5))
        figures: dict[str, Any] = {
            "first_byte_ms": await first_bytes(ways, request, small),
            "clients": {},
        }
        for clients in CLIENTS:
            counts = {"litellm": max(clients, small // 3)}
            usual = max(4 * clients, 3 * small)
            figures["clients"][clients] = {
                way.name: await throughput(way, request, clients, counts.get(way.name, usual))
                for way in ways
            }
        found[name] = figures
    return found


def show(found: dict[str, Any], ways: list[Way]) -> None:
    """Print the figures as tables."""
    for size, figures in found.items():
        print(f"\n{size}, stream of {EVENTS} events")
        for way in ways:
            took, direct = figures["first_byte_ms"][way.name], figures["first_byte_ms"]["direct"]
            added = [one - two for one, two in zip(took, direct, strict=True)]
            rates = [
                f"{clients}: {told[way.name]['per_s']:8.1f}/s {told[way.name]['cpu_ms']:7.2f} ms"
                for clients, told in figures["clients"].items()
            ]
            print(
                f"  {way.name:8} first byte {took[0]:7.2f} (+{added[0]:6.2f}), median"
                f" {took[1]:7.2f} (+{added[1]:6.2f}) ms  {'  '.join(rates)}"
            )
        cpu = {
            way.name: statistics.median(
                told[way.name]["cpu_ms"] for told in figures["clients"].values()
            )
            for way in ways
        }
        if cpu.get("litellm"):
            for name in (PASSING, REMEMBERING):
                share = cpu["litellm"] / cpu[name] if cpu[name] else float("inf")
                print(f"  processor time: {name} {cpu[name]:.2f} ms, litellm"
                      f" {cpu['litellm']:.2f} ms per request: {share:.0f} times")  # fmt: skip


def show_growing(grown: dict[str, dict[str, float]]) -> None:
    """Print what a growing conversation costs, against the gateway without memory."""
    print(
        f"\na conversation that grows by {GROWING_TURNS} turns from 50 KB on, ms of processor time"
    )
    for name, told in grown.items():
        ratio = told["cpu_ms"] / grown[PASSING]["cpu_ms"]
        print(f"  {name:8} {told['cpu_ms']:6.2f} per request ({ratio:.1f} times {PASSING}); with"
              f" pauses {told['request_ms']:6.2f} until its response ends and"
              f" {told['background_ms']:6.2f} behind it; first request {told['first_ms']:6.2f};"
              f" {told['late']:.0f} late")  # fmt: skip


def parse_options() -> argparse.Namespace:
    """Return the options of the command."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--upstream", action="store_true", help="be the upstream")
    options.add_argument("--rounds", type=int, default=200)
    options.add_argument("--litellm", type=Path, help="folder to keep LiteLLM's environment in")
    options.add_argument("--items", type=int, default=100_000, help="size of the filled memory")
    options.add_argument("--texts", type=Path, help="folder of evaluation data with real texts")
    options.add_argument("--keep", type=Path, help="folder to keep the filled memory in")
    options.add_argument("--embed", action="store_true", help="embed what is recorded")
    options.add_argument("--json", action="store_true")
    return options.parse_args()


def main() -> None:
    """Measure all ways in one run."""
    given = parse_options()
    if given.upstream:
        asyncio.run(be_upstream(given.texts))
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        direct = stack.enter_context(upstream_process(given.texts))

        def start(name: str, items: int = 0) -> Way:
            home = folder / name / ".lore"
            home.mkdir(parents=True)
            if items:
                fill(home, items, given.texts, given.keep)
            return stack.enter_context(lore_process(name, home, direct.port, embeds=given.embed))

        ways = [direct, start(PASSING), start(REMEMBERING)]
        kept = given.litellm or folder / "litellm"
        wrong = install_litellm(kept) if given.rounds else "no rounds"
        if wrong:
            print(f"LiteLLM is left out: {wrong}", file=sys.stderr)
        else:
            ways.append(stack.enter_context(litellm_process(kept, direct.port)))
        found = asyncio.run(measure(ways, given.rounds)) if given.rounds else {}
        grows = [*ways[1:3], *([start(FILLED, given.items)] if given.items else [])]
        exchanges = conversation(given.texts)
        grown = {way.name: asyncio.run(growing(way, exchanges)) for way in grows}
    if given.json:
        print(json.dumps({**found, "growing": grown}, indent=2))
    else:
        show(found, ways)
        show_growing(grown)


if __name__ == "__main__":
    main()
