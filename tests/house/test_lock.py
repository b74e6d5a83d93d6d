from tests.house.lock import ROOT, block, pins


def test_the_pins_that_uv_run_uses_are_those_of_the_lock_file():
    assert block() in (ROOT / "pyproject.toml").read_text("utf-8")


def test_every_locked_package_has_a_hash():
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    assert pins()
    entries = [entry for entry in lock.split("\n") if entry and not entry.startswith((" ", "#"))]
    assert len(entries) == len(pins())
    assert all(entry.endswith("\\") for entry in entries)


def test_the_lock_file_names_no_host():
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    assert "://" not in lock
