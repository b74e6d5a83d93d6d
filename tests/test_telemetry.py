"""Traces, as a real collector gets them from a real server."""

from __future__ import annotations

import http.client
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lore import telemetry
from lore.daemon import log_file
from lore.daemon.http_server import HttpServer
from lore.errors import InvalidInput
from lore.memory import Memory
from lore.proxy.address import find_address
from lore.records import NewMessage, Part
from lore.settings import load
from tests.fakes import NOON, FakeEmbedder
from tests.trace_collector import Collector, SentSpan, collecting
from tests.upstream import ModelReply, Text, Upstream, running_upstream
from tests.waiting import eventually

ROOT = Path(__file__).parents[1]
log = logging.getLogger("lore.tests")

CANARY = "zebrafish"
PROVIDER_KEY = "sk-ant-penguin-0123456789"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "tracestate": f"who={CANARY}"}
INTERNAL, SERVER, CLIENT = 1, 2, 3


@dataclass(frozen=True)
class Client:
    """A client of a server, and what it needs to be let in."""

    url: str
    key: str

    def ask(self, method: str, path: str, tree: object = None, **headers: str) -> Any:
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=60)
        sent = None if tree is None else json.dumps(tree).encode()
        usual = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        spelt = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            sent_headers = {**usual, **spelt, **CALLER}
            if "x-api-key" in spelt:
                del sent_headers["authorization"]
            connection.request(method, path, sent, sent_headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        finally:
            connection.close()


MCP_CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "recall", "arguments": {"query": f"where is the {CANARY}"}},
}
ANTHROPIC = {"x_claude_code_session_id": f"s-{CANARY}", "x_api_key": PROVIDER_KEY,
             "x_lore_project": f"/code/{CANARY}"}  # fmt: skip


def say(*texts: str) -> list[NewMessage]:
    return [NewMessage("user", (Part("text", text),), NOON, key=text) for text in texts]


def work(memory: Memory, client: Client, laptop: Memory, up: Upstream) -> None:
    """Use all that is traced, each with words that must not leave."""
    assert client.ask("POST", "/api/v1/capture", {
        "session": f"talk-{CANARY}", "agent": "codex", "project": f"/code/{CANARY}",
        "messages": [{"role": "user", "text": f"Always feed the {CANARY} at noon."}],
    })[0] == 200  # fmt: skip
    memory.remember(f"The {CANARY} lives in the pond.", project=f"/code/{CANARY}")
    memory.maintenance.embed_waiting()
    assert client.ask("POST", "/api/v1/retrieve", {"query": f"Where is the {CANARY}?"})[0] == 200
    assert client.ask("GET", f"/api/v1/sessions/{CANARY}")[0] == 404
    assert client.ask("GET", f"/api/v1/{CANARY}")[0] == 404
    accept = {"accept": "application/json, text/event-stream"}
    status, reply = client.ask("POST", "/mcp", MCP_CALL, **accept)
    assert (status, "pond" in json.dumps(reply)) == (200, True)
    body = {"model": "claude-sonnet-4-5", "max_tokens": 1000,
            "messages": [{"role": "user", "content": f"Feed the {CANARY}, please."}]}  # fmt: skip
    assert client.ask("POST", "/v1/messages", body, **ANTHROPIC)[0] == 200
    stored = [f"s-{CANARY}", f"talk-{CANARY}"]
    eventually(lambda: sorted(one.external_id for one in memory.sessions()) == stored)
    memory.digest(knowledge=True)
    memory.digest.consolidate()
    laptop.capture(f"far-{CANARY}", say(f"We moved the {CANARY} to the lake."), agent="codex")
    laptop.remember(f"The {CANARY} lives in the lake.")
    answer = {"sentences": [{"text": f"The {CANARY} is in the lake.", "from_items": [1]}]}
    up.reply_with(ModelReply(Text(json.dumps(answer))))
    assert laptop.search.ask(f"Where does the {CANARY} live?").written_by == "vllm:small-1"
    laptop.sync(client.url)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Collector, Upstream, str]]:
    """What a collector has of one of everything, what upstream got, and the lines of the log."""
    home, other = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("laptop")
    told: list[str] = []
    with running_upstream() as up, collecting() as collector:
        config = replace(
            load({}, home=home).settings, server_port=0, gateway_anthropic_url=up.url,
            gateway_within_ms=4_000,
        )  # fmt: skip
        close_log = log_file.open_log(home, echo=False)
        try:
            with (
                telemetry.recording(collector.url, {}, version="1.2.3", log=log),
                Memory.open(config=config, embedder=FakeEmbedder()) as memory,
            ):
                server = HttpServer(memory, lambda url, _notice: told.append(url))
                server.open()
                client = Client(told[-1], (home / "access.key").read_text().strip())
                chatty = replace(
                    load({}, home=other).settings, sync_api_key=client.key, chat_provider="vllm",
                    chat_base_url=f"{up.url}/v1", chat_model="small-1",
                )  # fmt: skip
                with Memory.open(config=chatty, embedder=FakeEmbedder()) as laptop:
                    work(memory, client, laptop, up)
                server.close()
                with telemetry.span("last"):
                    log.warning("a line of a trace")
                log.warning("a line of none")
        finally:
            close_log()
        eventually(lambda: {"sync", "last"} <= collector.names)
        yield collector, up, (home / "lore.log").read_text()


def test_every_part_of_the_work_is_a_span(traced: tuple[Collector, Upstream, str]) -> None:
    phases = {name for name in traced[0].names if name.startswith("consolidate ")}
    assert len(phases) == 10
    assert traced[0].names - phases - {"last"} == {
        "POST /api/v1/capture", "POST /api/v1/retrieve", "GET /api/v1/sessions/{id}", "GET",
        "POST /mcp", "GET /api/v1/sync", "GET /api/v1/changes", "POST /api/v1/push",
        "execute_tool recall", "recall", "parse", "gather", "describe", "score", "present",
        "embeddings fake", "capture", "distill", "curate", "consolidate", "sync",
        "gateway anthropic", "plan", "inject", "chat claude-sonnet-4-5", "chat small-1",
    }  # fmt: skip


@pytest.mark.parametrize("private", [CANARY, PROVIDER_KEY, "lore_local_", "/code", "codex"])
def test_no_content_key_or_name_leaves(
    private: str, traced: tuple[Collector, Upstream, str]
) -> None:
    assert not [body for body in traced[0].bodies if private.encode() in body]


def ancestors(collector: Collector, span: SentSpan) -> list[str]:
    by_id = {one.id: one for one in collector.spans}
    names = []
    while span.parent in by_id:
        span = by_id[span.parent]
        names.append(span.name)
    return names


def test_spans_nest_across_threads_and_tasks_in_the_trace_of_the_caller(
    traced: tuple[Collector, Upstream, str],
) -> None:
    collector = traced[0]
    of_caller = [span for span in collector.spans if span.trace == TRACE]
    lines = {(span.name, *ancestors(collector, span)) for span in of_caller}
    assert ("gather", "recall", "POST /api/v1/retrieve") in lines
    assert ("gather", "recall", "execute_tool recall", "POST /mcp") in lines
    assert ("capture", "gateway anthropic") in lines
    assert ("chat claude-sonnet-4-5", "gateway anthropic") in lines
    assert ("inject", "plan", "gateway anthropic") in lines
    assert {span.parent for span in of_caller if span.kind == SERVER} == {"00f067aa0ba902b7"}
    pushed = next(span for span in collector.spans if span.name == "POST /api/v1/push")
    assert ancestors(collector, pushed) == ["sync"]


def test_a_call_of_a_model_has_the_attributes_of_the_conventions(
    traced: tuple[Collector, Upstream, str],
) -> None:
    collector = traced[0]
    call = collector.find("chat claude-sonnet-4-5")
    assert call.kind == CLIENT
    assert call.seconds > 0
    assert call.attributes["gen_ai.provider.name"] == "anthropic"
    assert call.attributes["gen_ai.operation.name"] == "chat"
    assert call.attributes["gen_ai.usage.input_tokens"] > 0
    assert call.attributes["gen_ai.usage.output_tokens"] > 0
    assert call.attributes["gen_ai.usage.cache_read.input_tokens"] == 0
    assert call.attributes["gen_ai.response.finish_reasons"] == ["end_turn"]
    assert (call.attributes["lore.layer"], call.attributes["lore.rounds"]) == (0, 1)
    digest = collector.find("chat small-1")
    assert digest.attributes["gen_ai.provider.name"] == "vllm"
    assert digest.attributes["gen_ai.usage.input_tokens"] > 0
    tool = collector.find("execute_tool recall")
    assert tool.attributes["gen_ai.tool.name"] == "recall"


def test_what_was_not_found_is_named_by_its_route_and_its_status(
    traced: tuple[Collector, Upstream, str],
) -> None:
    missing = traced[0].find("GET /api/v1/sessions/{id}")
    assert missing.attributes["http.response.status_code"] == 404
    assert (missing.attributes["error.type"], missing.failed) == ("NotFound", False)
    assert "http.route" not in traced[0].find("GET").attributes


def test_providers_learn_nothing_of_the_trace_but_what_the_client_sent(
    traced: tuple[Collector, Upstream, str],
) -> None:
    (asked,) = [one for one in traced[1].model_requests if one.api == "anthropic"]
    assert dict(asked.headers)["traceparent"] == CALLER["traceparent"]
    digested = [one for one in traced[1].model_requests if one.api == "chat"]
    assert digested
    assert not [one for one in digested if "traceparent" in dict(one.headers)]


def test_a_line_of_the_log_has_the_id_of_its_trace(traced: tuple[Collector, Upstream, str]) -> None:
    traces = {span.trace for span in traced[0].spans if span.name == "last"}
    (inside,) = [line for line in traced[2].splitlines() if "a line of a trace" in line]
    (outside,) = [line for line in traced[2].splitlines() if "a line of none" in line]
    assert inside.rpartition("trace_id=")[2] in traces
    assert "trace_id" not in outside


def test_the_resource_names_the_program_and_no_machine(
    traced: tuple[Collector, Upstream, str],
) -> None:
    for resource in traced[0].resources:
        assert (resource["service.name"], resource["service.version"]) == ("lore", "1.2.3")
        assert not [name for name in resource if name.startswith(("host", "process", "os"))]


def test_the_names_of_attributes_are_those_of_the_semantic_conventions() -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
    from opentelemetry.semconv.attributes import error_attributes, http_attributes

    modules = (gen_ai_attributes, error_attributes, http_attributes)
    known = {value for module in modules for value in vars(module).values()
             if isinstance(value, str)}  # fmt: skip
    ours = {value for name, value in vars(telemetry).items() if name.isupper()
            and isinstance(value, str)
            and value.startswith(("gen_ai.", "http.", "error."))}  # fmt: skip
    assert len(ours) == 14
    assert ours <= known


UNTRACED = """
import sys
from pathlib import Path
import lore.daemon.main_loop, lore.gateway.memory_plugin
from lore.memory import Memory
with Memory.open(Path(sys.argv[1])) as memory:
    memory.remember("Penguins live in the south.")
    memory.recall("Where do penguins live?")
    memory.digest.consolidate()
print([name for name in sys.modules if name.startswith("opentelemetry")])
import lore.server.owner_server, lore.mcp.server
print([name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exp"))])
"""
"""The SDK of MCP imports the API of OpenTelemetry, which does nothing by itself."""


def test_without_an_endpoint_no_package_of_opentelemetry_is_imported(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", UNTRACED, str(tmp_path)], capture_output=True, text=True,
        env={**environ, "LORE_EMBED_PROVIDER": "none"}, cwd=ROOT, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("[]\n[]\n", 0), done.stderr


@pytest.mark.parametrize(
    ("setting", "environ", "endpoint"),
    [
        ("", {}, ""),
        ("http://c:4318", {}, "http://c:4318/v1/traces"),
        ("http://c:4318/v1/traces", {}, "http://c:4318/v1/traces"),
        ("", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"}, "http://c:4318/v1/traces"),
        ("", {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/mine"}, "http://c/mine"),
        ("http://c", {"OTEL_SDK_DISABLED": "true"}, ""),
        ("http://c", {"OTEL_TRACES_EXPORTER": "none"}, ""),
    ],
)
def test_the_endpoint_is_that_of_the_setting_or_the_standard_variables(
    setting: str, environ: dict[str, str], endpoint: str
) -> None:
    assert telemetry.find_endpoint(setting, environ) == endpoint


HIDDEN = """
import importlib.util, logging, sys
sys.modules["opentelemetry.exporter"] = None
from lore import telemetry
from lore.errors import InvalidInput
log = logging.getLogger("lore")
logging.basicConfig(format="%(message)s %(hint)s")
with telemetry.recording("", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, version="1", log=log):
    print(telemetry.is_on())
try:
    with telemetry.recording("http://c", {}, version="1", log=log):
        pass
except InvalidInput as error:
    print(error, error.hint)
"""


def test_missing_packages_are_an_error_for_the_setting_and_a_warning_for_the_variable() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.startswith("False\n'telemetry.endpoint' is set, but")
    assert "pip install 'agent-lore[telemetry]'" in done.stdout
    assert "no traces, package missing Install agent-lore[telemetry]" in done.stderr


@pytest.mark.parametrize("value", ["a name with spaces", "Ünicode", "x" * 101, "-v", "a\nb"])
def test_a_text_that_is_no_name_is_left_out(value: str) -> None:
    assert telemetry._clean({"a": value, "b": (value,), "c": 1, "d": "gpt-5.4"}) == {
        "c": 1,
        "d": "gpt-5.4",
    }
    assert telemetry.model_span("chat", value) == "chat"


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput):
        load({"LORE_TELEMETRY_ENDPOINT": "collector"})


@pytest.mark.only_sqlite("a real daemon of a home")
def test_a_daemon_whose_collector_hangs_answers_and_stops(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("LORE_")}
    with collecting(hangs=True) as collector:
        environ |= {
            "HOME": str(tmp_path), "LORE_HOME": str(tmp_path / "home"), "LORE_SERVER_PORT": "0",
            "LORE_EMBED_PROVIDER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }  # fmt: skip
        with subprocess.Popen(
            [sys.executable, "-m", "lore.cli", "up"], env=environ, cwd=ROOT,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as daemon:  # fmt: skip
            address = eventually(lambda: find_address(str(tmp_path / "home")))
            assert address is not None
            client = Client(address.url, address.key)
            assert client.ask("GET", "/status")[0] == 200
            eventually(lambda: collector.requests)
            for _ in range(5):
                assert client.ask("GET", "/status")[0] == 200
            daemon.terminate()
            assert daemon.wait() == 0
        assert not collector.bodies
        assert collector.requests[0][0] == "/v1/traces"
    lines = (tmp_path / "home" / "lore.log").read_text()
    assert "traces on" in lines
    assert "stopped" in lines
