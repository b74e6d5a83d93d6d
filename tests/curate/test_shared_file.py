from __future__ import annotations

from pathlib import Path

import pytest

from lore.curate.shared_file import LARGEST_BYTES, read_page, write_page
from lore.errors import InvalidInput
from lore.redaction import UNKEPT

KEY = "sk-ant-api03-" + "A1b2C3d4" * 11 + "-abcdefAA"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".lore.md"


def entries(path: Path) -> list[str]:
    page = read_page(path, UNKEPT)
    assert page is not None
    return [entry.text for entry in page.entries]


def test_there_is_no_page_where_there_is_no_file(path: Path):
    assert read_page(path, UNKEPT) is None


def test_a_page_of_another_editor_is_read(path: Path):
    path.write_bytes("\ufeff## Facts\r\n- Retries stop at five.\r\n".encode())
    assert entries(path) == ["Retries stop at five."]


def test_a_byte_that_is_no_text_spoils_only_itself(path: Path):
    path.write_bytes(b"## Facts\n- Retries \xff stop.\n- Ports are 80.\n")
    assert entries(path) == ["Retries \ufffd stop.", "Ports are 80."]


def test_a_secret_is_not_read(path: Path):
    path.write_text(f"## Facts\n- The key is {KEY}\n")
    (told,) = entries(path)
    assert KEY not in told
    assert "[secret:" in told


def test_links_are_neither_read_nor_written(path: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere.md"
    elsewhere.write_text("- theirs\n")
    path.symlink_to(elsewhere)
    with pytest.raises(InvalidInput, match="is a link"):
        read_page(path, UNKEPT)
    with pytest.raises(InvalidInput, match="is a link"):
        write_page(path, "- ours\n")
    assert elsewhere.read_text() == "- theirs\n"


def test_a_page_is_at_most_so_large(path: Path):
    path.write_bytes(b"x" * LARGEST_BYTES)
    assert read_page(path, UNKEPT) is not None
    path.write_bytes(b"x" * (LARGEST_BYTES + 1))
    with pytest.raises(InvalidInput, match="at most"):
        read_page(path, UNKEPT)


def test_an_unfinished_merge_is_refused(path: Path):
    path.write_text("<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> other\n")
    with pytest.raises(InvalidInput, match="unfinished merge"):
        read_page(path, UNKEPT)


def test_a_page_is_written_whole_and_nothing_is_left_beside_it(path: Path):
    write_page(path, "- one\n")
    write_page(path, "- two\n")
    assert path.read_bytes() == b"- two\n"
    assert list(path.parent.iterdir()) == [path]


def test_a_page_that_cannot_be_written_leaves_the_former_one(path: Path):
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        write_page(path, "- one\n")
    assert list(path.parent.iterdir()) == [path]
