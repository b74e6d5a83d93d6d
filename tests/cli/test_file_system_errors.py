"""Homes, disks, databases and files that are not as they should be."""

import os
import shutil
import stat
import subprocess
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from lore.errors import NotFound, SchemaTooNew, StoreDamaged, StoreFull, StoreReadOnly
from tests.cli.conftest import PROGRAM, UNSET, Lore, Seeded, environment, run_process

ROOT = os.geteuid() == 0


def change_database(home: Path, sql: str) -> None:
    connection = apsw.Connection(str(home / "memory.db"))
    connection.execute(sql)
    connection.close()


def contents(home: Path) -> bytes:
    return (home / "memory.db").read_bytes()


READING = (
    ("recall", "heron"), ("search", "heron"), ("sessions", "heron"), ("standing",), ("roots",),
    ("explore", "heron"), ("stats",), ("export",), ("embed",), ("backup",), ("undo",),
)  # fmt: skip


@pytest.mark.parametrize("command", READING, ids=lambda command: command[0])
def test_a_command_that_stores_nothing_makes_no_home(lore: Lore, command: tuple[str, ...]):
    lore(*command).fails_with(NotFound.exit_code)
    assert not lore.home.exists()


@pytest.mark.parametrize("command", [*READING, ("remember", "x")], ids=lambda c: c[0])
def test_a_home_that_is_a_file_is_an_error(tmp_path: Path, command: tuple[str, ...]):
    home = tmp_path / "home"
    home.write_text("a file")
    Lore(home)(*command).fails_with(4 if command[0] == "remember" else 3)
    assert home.read_text() == "a file"


def test_a_read_only_home_is_read_and_not_written(seeded: Seeded):
    if ROOT:
        pytest.skip("root may write everywhere; the immutable flag needs a real file system")
    seeded.home.chmod(0o500)
    (seeded.home / "memory.db").chmod(0o400)
    try:
        assert "heron" in seeded("search", "heron").works().out
        seeded("remember", "x").fails_with(StoreReadOnly.exit_code)
    finally:
        seeded.home.chmod(0o700)


@pytest.fixture
def mounted(tmp_path: Path):
    folder = tmp_path / "disk"
    folder.mkdir()
    if not ROOT or not shutil.which("mount"):
        pytest.skip("mounting a small disk needs root")
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "lore-test", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not allow mounting")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_fails_clearly_and_reading_goes_on(mounted: Path, seed: Seeded):
    home = mounted / "home"
    shutil.copytree(seed.home, home)
    lore = Lore(home)
    before = lore.export()
    ballast = os.open(mounted / "ballast", os.O_CREAT | os.O_WRONLY)
    with suppress(OSError):
        while True:
            os.write(ballast, b"\0" * 4096)
    os.ftruncate(ballast, os.fstat(ballast).st_size - 98_304)  # room for SQLite's shared memory
    os.close(ballast)
    lore("remember", "no room " * 20_000).fails_with(StoreFull.exit_code)
    assert "heron" in lore("search", "heron").works().out
    (mounted / "ballast").unlink()
    assert lore.export() == before
    lore("remember", "there is room again").works()


def test_a_read_only_disk_is_read_and_not_written(mounted: Path, seed: Seeded):
    home = mounted / "home"
    shutil.copytree(seed.home, home)
    subprocess.run(["mount", "-o", "remount,ro", str(mounted)], check=True)
    lore = Lore(home)
    for look in (("search", "heron"), ("recall", "heron"), ("read", seed.child), ("stats",)):
        assert lore(*look).works().out
    changes = (
        ("remember", "x"), ("delete", seed.child), ("config", "embed.model", "x"), ("backup",),
        ("update", seed.child, "x"), ("undo",), ("link", seed.child, seed.parent),
        ("supersede", seed.child, seed.parent), ("forget", seed.child, "--yes"),
        ("export", str(home / "x.jsonl")), ("restore", str(home / "memory.db")),
    )  # fmt: skip
    for change in changes:
        lore(*change).fails_with(StoreReadOnly.exit_code)


def test_output_to_a_full_device_is_an_error(seeded: Seeded):
    if not Path("/dev/full").exists():
        pytest.skip("this machine has no /dev/full")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*PROGRAM, "export"],
            env=environment(seeded.home),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == StoreFull.exit_code
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["with space", "ünï-cödé-日本", "-dash", "$HOME", "a'b\"c"])
def test_any_folder_name_makes_a_home(tmp_path: Path, name: str):
    home = tmp_path / name
    run_process("remember", "x marks the spot", home=home).works()
    assert "spot" in run_process("search", "spot", home=home).works().out
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "memory.db").stat().st_mode) == 0o600


def test_a_relative_home_is_in_the_current_folder(tmp_path: Path):
    run_process("remember", "x", home="here", cwd=tmp_path).works()
    assert (tmp_path / "here" / "memory.db").exists()


def test_an_empty_home_variable_means_the_default(tmp_path: Path):
    run_process("remember", "x", home="", env={"HOME": str(tmp_path)}).works()
    assert (tmp_path / ".lore" / "memory.db").exists()


def test_without_home_variables_the_system_user_decides(tmp_path: Path):
    outcome = run_process("config", "home", env={"HOME": UNSET})
    assert ".lore" in outcome.works().out


def test_an_empty_home_option_is_refused(seeded: Seeded):
    seeded("--home", "", "stats").fails_with(2)


def test_an_unknown_user_in_the_path_is_an_error(seeded: Seeded):
    outcome = seeded("--home", "~nobody-of-this-name/x", "stats").fails_with(3)
    assert "LORE_HOME" in outcome.err


def test_a_path_that_is_too_long_is_an_error(seeded: Seeded, documented_codes: set[int]):
    outcome = seeded("--home", "/" + "x" * 5_000, "remember", "x")
    outcome.fails_with(outcome.code)
    assert outcome.code in documented_codes


def test_a_database_of_a_newer_program_is_left_alone(seeded: Seeded):
    change_database(seeded.home, "INSERT INTO migrations VALUES ('m999_later', 0)")
    change_database(seeded.home, "PRAGMA user_version = 999")
    before = contents(seeded.home)
    for command in (("recall", "x"), ("remember", "x"), ("stats",), ("undo",)):
        outcome = seeded(*command).fails_with(SchemaTooNew.exit_code)
        assert "newer Lore" in outcome.err
    assert seeded("doctor").code == 7
    assert contents(seeded.home) == before


def test_a_database_of_another_program_is_left_alone(lore: Lore):
    lore.home.mkdir()
    change_database(lore.home, "CREATE TABLE recipes (cake TEXT)")
    before = contents(lore.home)
    for command in (("recall", "x"), ("remember", "x"), ("stats",)):
        outcome = lore(*command).fails_with(StoreDamaged.exit_code)
        assert "another program" in outcome.err
    assert lore("doctor").code == 7
    assert contents(lore.home) == before


def test_a_file_that_is_no_database_is_left_alone(lore: Lore):
    lore.home.mkdir()
    (lore.home / "memory.db").write_text("Dear diary, " * 1_000)
    for command in (("recall", "x"), ("remember", "x"), ("stats",), ("export",), ("backup",)):
        lore(*command).fails_with(StoreDamaged.exit_code)
    told = lore("doctor")
    assert told.code == 7
    assert "broken" in told.out
    assert (lore.home / "memory.db").read_text().startswith("Dear diary")


def test_a_database_that_is_a_folder_is_an_error(lore: Lore):
    (lore.home / "memory.db").mkdir(parents=True)
    lore("remember", "x").fails_with(4)


def test_doctor_reports_a_damaged_database_and_restore_replaces_it(seeded: Seeded, tmp_path: Path):
    seeded("backup", str(tmp_path / "good.db")).works()
    path = seeded.home / "memory.db"
    sound = path.read_bytes()
    middle = len(sound) // 8
    path.write_bytes(sound[:middle] + b"\xaa" * (len(sound) - 2 * middle) + sound[-middle:])
    told = seeded("doctor")
    assert told.code == 7
    assert "Traceback" not in told.err
    for command in (("recall", "heron"), ("remember", "x"), ("export",), ("stats",)):
        outcome = seeded(*command)
        assert outcome.code in (0, 4, 6, 7), outcome
    seeded("restore", str(tmp_path / "good.db")).works()
    assert "heron" in seeded("search", "heron").works().out


def test_backup_never_overwrites_a_file(seeded: Seeded, tmp_path: Path):
    taken = tmp_path / "taken.db"
    taken.write_text("mine")
    seeded("backup", str(taken)).fails_with(2)
    assert taken.read_text() == "mine"
    before = seeded.export()
    seeded("backup", str(seeded.home / "memory.db")).fails_with(2)
    seeded("backup", str(tmp_path / "missing" / "x.db")).fails_with(3)
    assert seeded.export() == before


def test_export_overwrites_a_file_only_on_request(seeded: Seeded, tmp_path: Path):
    taken = tmp_path / "taken.jsonl"
    taken.write_text("mine")
    seeded("export", str(taken)).fails_with(2)
    assert taken.read_text() == "mine"
    seeded("export", str(taken), "--overwrite").works()
    assert taken.read_text().startswith('{"lore":1')
    seeded("export", str(tmp_path)).fails_with(2)


def test_an_export_to_a_dash_goes_to_standard_output_and_comes_back_from_standard_input(
    seeded: Seeded, tmp_path: Path
):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    written = run_process("export", "-", home=seeded.home, cwd=folder).works()
    assert "record" not in written.out.splitlines()[0]
    assert seeded.parent in written.out
    assert written.err.endswith("exported.\n")
    read = run_process("import", "-", home=seeded.home, stdin=written.out.encode(), cwd=folder)
    assert read.works().out.startswith("0 records imported")
    run_process("backup", "-", home=seeded.home, cwd=folder).fails_with(2)
    assert list(folder.iterdir()) == []


def test_an_export_never_replaces_the_database(seeded: Seeded):
    before = seeded.export()
    seeded("export", str(seeded.home / "memory.db"), "--overwrite").fails_with(2)
    assert seeded.export() == before


def test_an_export_to_a_device_leaves_the_device(seeded: Seeded):
    seeded("export", "/dev/null").works()
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_an_export_to_a_missing_folder_is_an_error(seeded: Seeded, tmp_path: Path):
    seeded("export", str(tmp_path / "missing" / "x.jsonl")).fails_with(3)


def test_only_a_sound_backup_of_lore_is_restored(seeded: Seeded, tmp_path: Path):
    before = seeded.export()
    files = {"text.db": b"no database", "empty.db": b"", "cut.db": contents(seeded.home)[:5000]}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        outcome = seeded("restore", str(tmp_path / name))
        assert outcome.code in (2, 7), outcome
        outcome.fails_with(outcome.code)
    seeded("restore", str(tmp_path)).fails_with(3)
    seeded("restore", str(tmp_path / "none.db")).fails_with(3)
    assert seeded.export() == before


def test_restoring_the_database_from_itself_changes_nothing(seeded: Seeded):
    before = seeded.export()
    seeded("restore", str(seeded.home / "memory.db"))
    assert seeded.export() == before


def test_a_removed_working_directory_is_an_error(tmp_path: Path):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"""cd '{gone}' && rmdir '{gone}' && exec "$@" """
    done = subprocess.run(
        ["sh", "-c", script, "sh", *PROGRAM, "stats"],
        env=environment(None, HOME=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (1, 3)
    assert done.stderr.startswith("lore: ")
    assert "Traceback" not in done.stderr
