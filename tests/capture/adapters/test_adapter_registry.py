"""The adapter that fits a file is found by its name and its first bytes."""

import pytest

from lore.capture.adapter_protocol import LineAdapter, WholeAdapter
from lore.capture.adapters import claude_code, codex, generic, sweagent
from lore.capture.adapters.adapter_registry import ADAPTERS, find_adapter
from tests.capture.adapters.samples import (
    CLAUDE,
    CODEX,
    GENERIC,
    NO_SHARED,
    TRAJECTORY,
    dumped,
    shared,
    shared_lines,
)


def test_every_adapter_reads_lines_or_a_whole():
    for adapter in ADAPTERS:
        assert isinstance(adapter, LineAdapter) != isinstance(adapter, WholeAdapter)
        assert adapter.agent


@pytest.mark.parametrize(
    ("name", "content", "adapter"),
    [
        ("a.jsonl", dumped(*CLAUDE), claude_code),
        ("rollout-x.jsonl", dumped(*CODEX), codex),
        ("a.jsonl", dumped(*GENERIC), generic),
        ("a.traj", dumped(TRAJECTORY), sweagent),
        ("a.txt", dumped(*CLAUDE), None),
        ("a.jsonl", b"", None),
        ("a.jsonl", b"\xff\x00 garbage", None),
        ("a.json", b"{}", None),
    ],
)
def test_a_file_finds_its_adapter(tmp_path, name, content, adapter):
    path = tmp_path / name
    path.write_bytes(content)
    assert find_adapter(path, content[:4096]) is adapter


def test_a_link_has_no_adapter(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(dumped(*CLAUDE))
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    assert find_adapter(link, dumped(*CLAUDE)) is None


@pytest.mark.skipif(not shared("*.jsonl.gz"), reason=NO_SHARED)
@pytest.mark.parametrize("path", shared("[es]*.jsonl.gz"), ids=lambda path: path.name)
def test_a_real_transcript_finds_its_adapter(path, tmp_path):
    copy = tmp_path / path.stem
    copy.write_bytes(b"\n".join(shared_lines(path)))
    assert find_adapter(copy, copy.read_bytes()[:65_536]) is claude_code
