"""Trajectories of SWE-agent."""

import gzip

import orjson
import pytest

from lore.capture.adapters import sweagent
from lore.errors import InvalidInput, NotFound
from tests.capture.adapters.samples import NO_SHARED, TRAJECTORY, shapes, shared


def written(tmp_path, document):
    path = tmp_path / "run.traj"
    path.write_bytes(document if isinstance(document, bytes) else orjson.dumps(document))
    return path


def test_run_yields_its_messages_in_order(tmp_path):
    (stretch,) = sweagent.read(written(tmp_path, TRAJECTORY), 0)
    assert shapes(stretch.messages) == [
        ("system", [("aside", "SETTING")]),
        ("system", [("aside", "A demonstration")]),
        ("user", [("text", "Mend the bug.")]),
        ("assistant", [("text", "Look.")]),
        ("assistant", [("tool_call", "ls")]),
        ("tool", [("tool_result", "a.py")]),
    ]
    assert stretch.position == 5


def test_nobody_typed_the_template_of_a_run(tmp_path):
    (stretch,) = sweagent.read(written(tmp_path, TRAJECTORY), 0)
    assert [m.origin for m in stretch.messages if m.role == "user"] == ["repo"]


def test_a_run_that_goes_on_keeps_its_keys_and_another_run_has_its_own(tmp_path):
    def keys(history):
        (stretch,) = sweagent.read(written(tmp_path, {"history": history}), 4)
        return [message.key for message in stretch.messages]

    history = TRAJECTORY["history"]
    assert keys(history)[:5] == keys(history[:4])
    assert not set(keys(history)) & set(keys([{"role": "user", "content": "Another bug."}]))


def test_invalid_trajectory_raises_an_error(tmp_path):
    with pytest.raises(InvalidInput):
        list(sweagent.read(written(tmp_path, b"{"), 0))
    with pytest.raises(NotFound):
        list(sweagent.read(tmp_path / "missing.traj", 0))


@pytest.mark.skipif(not shared("*.traj.gz"), reason=NO_SHARED)
@pytest.mark.parametrize("path", shared("*.traj.gz"), ids=lambda path: path.name)
def test_a_real_run_has_every_action_and_observation(path, tmp_path):
    raw = gzip.decompress(path.read_bytes())
    steps = orjson.loads(raw)["trajectory"]
    (stretch,) = sweagent.read(written(tmp_path, raw), 0)
    parts = [part for message in stretch.messages for part in message.parts]
    actions = [part.text for part in parts if part.kind == "tool_call"]
    assert actions == [step["action"] for step in steps]
    assert sum(part.kind == "tool_result" for part in parts) >= len(steps) - 1
