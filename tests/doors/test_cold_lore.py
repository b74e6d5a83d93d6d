"""The first session after a reboot: nothing of Lore runs, and the agent waits for nobody."""

from __future__ import annotations

from lore.daemon import daemon_lock
from tests.clients import claude_code
from tests.clients.script import Call, Reply, Scene
from tests.clients.upstream import running_upstream
from tests.doors.machine import Machine, find_client, offered, texts_of, write_folder

KNOWN = "Proofs of the almanac go to Ines, who checks the tides."
ASK = "Who checks the proofs of the almanac?"
TOOL = "mcp__lore__recall"
SCENES = (
    Scene(
        ASK, (Reply(text="I look.", calls=(Call(TOOL, {"query": ASK}),)), Reply(text="Ines."))
    ),
)  # fmt: skip


def test_an_impatient_agent_has_its_tools_and_its_first_call_is_answered(tmp_path):
    find_client("claude")
    with running_upstream(SCENES, tmp_path / "upstream.jsonl") as upstream:
        machine = Machine(tmp_path / "person", tmp_path / "lore", upstream)
        almanac = write_folder(machine.home / "code" / "almanac")
        machine.lore("remember", KNOWN, "--everywhere")
        machine.lore("setup", "claude-code")
        assert daemon_lock.find_holder(machine.lore_home) is None
        try:
            client = machine.client("claude", claude_code, almanac, patient=False)
            done = client.run("-p", "--output-format", "json", "--allowedTools", TOOL, given=ASK)
            assert done.status == 0, done
            first, last = machine.asked(ASK)
            assert TOOL in offered(first)
            assert KNOWN in "\n".join(texts_of(last.body))
        finally:
            machine.stop()
