"""Names, passwords and wrappings that the tables of the second redaction corpus share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from heldout_draw import Kind

NAMES = {
    "who": "nadia tomasz priya kwame lucia henrik yusuf mei oskar fatima root ubuntu ci-bot".split(),
    "org": "brightleaf kumo-labs ferrovia sundial pinebox ostrich-apps quanta mirador".split(),
    "app": "storefront ledger notifier telemetry thumbnailer courier matchmaker portal".split(),
    "base": "warehouse tickets payroll catalog sensors accounts bookings audit".split(),
    "env": "dev staging prod qa sandbox".split(),
    "code": "auth bootstrap mail_client upload settings gateway push sync billing_hook".split(),
    "region": "us-east-1 eu-central-1 ap-southeast-2 westeurope europe-west4 fra1".split(),
    "port": "5432 3306 6379 27017 8080 8443 1883 9200".split(),
    "server": [
        "«base»-«env».«org».net", "172.16.«dig:1».«dig:2»", "«app».svc.cluster.local",
        "«app»-«dig:2».«region».«org».dev", "127.0.0.1", "«env»-«base».«org».com",
    ],
    "day": ["2026-«01|02|03|04|05|06|07»-«11|12|14|17|19|21|23|26|28»"],
    "clock": ["«08|09|10|11|13|15|17|21»:«12|15|27|31|44|58»:«01|09|16|23|37|42|55»"],
    "stamp": ["«day»T«clock».«dig:3»Z"],
    "id": ["«hex:8»-«hex:4»-4«hex:3»-9«hex:3»-«hex:12»"],
    "line": ["«1|2|3|4|5|6|7|8|9»«dig:1»"],
}  # fmt: skip
"""What fills the slots of lines; the words of `heldout_draw` do for the rest."""

NOUN = "«kestrel|basil|quartz|tundra|mango|otter|cinder|pylon|saffron|badger|lichen|fjord|anvil»"
CAP = "«Kestrel|Basil|Quartz|Tundra|Mango|Otter|Cinder|Pylon|Saffron|Badger|Lichen|Fjord|Anvil»"

PLAIN = (
    "«b62:15-22»",
    f"{CAP}-{NOUN}-{NOUN}-«dig:2»",
    "«b62:9»_«b62:7»",
    f"{CAP}«dig:4»{CAP}",
    "«b62:24-32»",
    f"{NOUN}.{NOUN}.«dig:3»",
    "«an:20»",
)
"""Passwords that stand in a shell, an URL or a file without quotes."""

SYMBOLS = (
    "«b62:7»@«b62:3»#«b62:5»",
    f"{CAP}«dig:2»!{NOUN}",
    "«b62:4»%«b62:5»*«b62:6»",
    "«b62:11»=«b62:3»+",
    f"{CAP}?{CAP}«dig:3»",
    "«b62:6»^«b62:6»~",
    "«b62:16»",
)
"""Passwords that want quotes around them."""

JWT = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ1aWQiOiI«url:60-120».«url:43»",
    "eyJhbGciOiJFZERTQSJ9.eyJhdWQiOiJ«url:70-90».«url:86»",
    "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6Ij«url:20».eyJhenAiOiJ«url:150-220».«url:342»",
)


def hide(name: str, keys: Sequence[str], *lines: str, shape: Callable[[str], str] = str) -> Kind:
    """Return a kind whose lines hold one of the keys at «SECRET»."""
    return Kind(name, lines, keys, NAMES, shape)


def keep(name: str, *lines: str, shape: Callable[[str], str] = str) -> Kind:
    """Return a kind whose lines hide nothing."""
    return Kind(name, lines, (), NAMES, shape)


def call_codex(command: str) -> str:
    """Return the command as a rollout of Codex records the call of its shell."""
    arguments = json.dumps({"command": ["bash", "-lc", command], "workdir": "/code/app"})
    payload = {"type": "function_call", "name": "shell", "arguments": arguments}
    return json.dumps({"type": "response_item", "payload": payload})


def run_opencode(text: str) -> str:
    """Return a command and its output (the lines after the first) as a part of opencode."""
    command, _, output = text.partition("\n")
    state = {"status": "completed", "input": {"command": command}, "output": output}
    return json.dumps({"type": "tool", "tool": "bash", "state": state})


def answer_tool(text: str) -> str:
    """Return the text as Claude Code records what a tool answered."""
    content = [{"type": "tool_result", "content": text, "is_error": False}]
    return json.dumps({"type": "user", "message": {"role": "user", "content": content}})


def edit_file(text: str) -> str:
    """Return the text as what an agent's edit puts into a file in place of its first line."""
    old, _, new = text.partition("\n")
    call = {"file_path": "/code/app/settings", "old_string": old, "new_string": new}
    return json.dumps({"type": "tool_use", "name": "Edit", "input": call})


def number_by_tab(text: str) -> str:
    """Return the text as `cat -n` shows it, from a line in the middle of a file."""
    return "\n".join(f"{n:>6}\t{line}" for n, line in enumerate(text.split("\n"), 38))


def quote_mail(text: str) -> str:
    """Return the text as a quotation in a reply."""
    return "\n".join(f"> {line}" for line in text.split("\n"))
