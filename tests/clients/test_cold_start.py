"""The first session after a reboot: nothing of Lore runs, and the agent waits for nobody."""

from __future__ import annotations

from lore.daemon import daemon_lock
from tests.clients import claude_code
from tests.clients.machine import Machine, find_client, json_texts, tool_texts, write_repository
from tests.upstream import Call, ModelReply, Scene, SceneScript, running_upstream

KNOWN = "Proofs of the almanac go to Ines, who checks the tides."
ASK = "Who checks the proofs of the almanac?"
TOOL = "mcp__lore__recall"
SCENES = (
    Scene(
        ASK, (ModelReply("I look.", Call(TOOL, {"query": ASK})), ModelReply("Ines."))
    ),
)  # fmt: skip


def test_an_impatient_agent_has_its_tools_and_its_first_call_is_answered(tmp_path):
    find_client("claude")
    with running_upstream(SceneScript(SCENES)) as upstream:
        machine = Machine(tmp_path / "person", tmp_path / "lore", upstream)
        almanac = write_repository(machine.home / "code" / "almanac")
        machine.lore("remember", KNOWN, "--everywhere")
        machine.lore("setup", "claude-code")
        assert daemon_lock.find_holder(machine.lore_home) is None
        try:
            client = machine.client("claude", claude_code, almanac, wait_for_mcp=False)
            done = client.run("-p", "--output-format", "json", "--allowedTools", TOOL, input=ASK)
            assert done.status == 0, done
            first, last = machine.requests(ASK)
            assert TOOL in tool_texts(first)
            assert KNOWN in "\n".join(json_texts(last.json))
        finally:
            machine.stop()
