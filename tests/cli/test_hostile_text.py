"""Text that was made to break something, in every place that takes text."""

import sys

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.cli.conftest import Lore, Seeded, run_process

PLACES = {
    "remember": ("remember", "TEXT"),
    "remember from stdin": ("remember", "-"),
    "remember --summary": ("remember", "x", "--summary", "TEXT"),
    "remember --kind": ("remember", "x", "--kind", "TEXT"),
    "remember --origin": ("remember", "x", "--origin", "TEXT"),
    "remember --key": ("remember", "x", "--key", "TEXT"),
    "remember --project": ("remember", "x", "--project", "TEXT"),
    "remember --parent": ("remember", "x", "--parent", "TEXT"),
    "update --reason": ("update", "CHILD", "x", "--reason", "TEXT"),
    "recall": ("recall", "TEXT"),
    "recall from stdin": ("recall", "-"),
    "recall --scope": ("recall", "x", "--scope", "TEXT"),
    "recall --recipe": ("recall", "x", "--recipe", "TEXT"),
    "recall --session": ("recall", "x", "--session", "TEXT"),
    "recall --project": ("recall", "x", "--project", "TEXT"),
    "recall --why-not": ("recall", "x", "--why-not", "TEXT"),
    "search": ("search", "TEXT"),
    "search --deep": ("search", "TEXT", "--deep"),
    "search --since": ("search", "x", "--since", "TEXT"),
    "search --kind": ("search", "x", "--kind", "TEXT"),
    "search --parent": ("search", "x", "--parent", "TEXT"),
    "sessions": ("sessions", "TEXT"),
    "standing --project": ("standing", "--project", "TEXT"),
    "read": ("read", "TEXT"),
    "explore": ("explore", "TEXT"),
    "roots": ("roots", "TEXT"),
    "traverse": ("traverse", "TEXT"),
    "traverse --direction": ("traverse", "PARENT", "--direction", "TEXT"),
    "log": ("log", "TEXT"),
    "diff": ("diff", "TEXT"),
    "why": ("why", "TEXT"),
    "delete": ("delete", "TEXT"),
    "undo": ("undo", "TEXT"),
    "link --note": ("link", "PARENT", "CHILD", "--note", "TEXT"),
    "link --kind": ("link", "PARENT", "CHILD", "--kind", "TEXT"),
    "supersede": ("supersede", "PARENT", "TEXT"),
    "forget": ("forget", "TEXT", "--dry-run"),
    "forget --session": ("forget", "--session", "TEXT", "--dry-run"),
    "forget --project": ("forget", "--project", "TEXT", "--dry-run"),
    "forget --match": ("forget", "--match", "TEXT", "--dry-run"),
    "restore": ("restore", "TEXT"),
    "import": ("import", "TEXT"),
    "config": ("config", "TEXT"),
    "config value": ("config", "embed.model", "TEXT"),
}

TEXTS = {
    "empty": "",
    "blank": " \t\n ",
    "fts": '" OR NEAR( * ^ : - AND NOT {a b} col: "',
    "sql": "'; DROP TABLE items; --",
    "surrogate": "lone \ud800 half",
    "escape": "\x1b[2J\x1b]0;title\x07 \x9b31m red",
    "markup": "[bold]x[/bold] [/] [link=http://x]y[/link] \\",
    "bidi": "safe\u202egnp.exe\u2066",
    "nul": "before\0after",
    "digits": "٠١٢٣٤٥٦٧٨٩",
    "format": "%s %n {0} {x.__class__} $(id) `id`",
    "emoji": "👩‍👩‍👧 naïve ﬀ İ ß",
    "long": "word " * 20_000,
    "one word": "x" * 70_000,
    "path": "../../../../etc/passwd",
}


def fill(place: tuple[str, ...], text: str, home: Seeded) -> list[str]:
    names = {"TEXT": text, "PARENT": home.parent, "CHILD": home.child}
    return [names.get(word, word) for word in place]


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_no_text_breaks_a_command_or_loses_anything(
    seeded: Seeded, documented_codes: set[int], place: tuple[str, ...]
):
    before = {line for line in seeded.export() if seeded.child not in line}
    for name, text in TEXTS.items():
        stdin = text.encode("utf-8", "surrogatepass")
        outcome = seeded(*fill(place, text, seeded), stdin=stdin)
        assert outcome.code in documented_codes, (name, outcome)
        shown = outcome.out + outcome.err
        assert not any(bad in shown for bad in ("\x1b", "\x9b", "\x07", "\u202e", "\0")), name
        if outcome.code:
            outcome.fails_with(outcome.code)
            assert len(outcome.err) < 1_000, name
    assert before <= seeded.export()


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_control_characters_of_stored_text_are_escaped(lore: Lore, text: str):
    stored = lore("remember", "-", stdin=text.encode("utf-8", "surrogatepass"))
    if not text.strip():
        stored.fails_with(2)
        return
    id_ = stored.works().out.strip()
    lore("update", id_, f"changed {text}", "--reason", text or "none").works()
    for command in (
        ("read", id_), ("why", id_), ("log", id_), ("diff", id_), ("roots",), ("explore", id_),
        ("read", id_, "--json"), ("search", "changed"), ("recall", "changed", "--explain"),
        ("recall", "changed", "--json", "--why-not", id_), ("delete", id_), ("undo",),
    ):  # fmt: skip
        outcome = lore(*command).works()
        acting = [c for c in outcome.out if c != "\n" and not c.isprintable() and c != "\t"]
        assert not set(acting) - {"\u200d"}, (command, acting)


def test_a_text_of_ten_megabytes_is_refused_with_its_size_and_nothing_is_stored(
    seeded: Seeded,
):
    before = seeded.export()
    outcome = seeded("remember", "-", stdin=b"ten megabytes " * 750_000).fails_with(2)
    assert "10,499,999 characters" in outcome.err
    assert seeded.export() == before


def test_a_question_of_ten_megabytes_is_answered(seeded: Seeded):
    outcome = seeded("recall", "-", stdin=b"heron " + b"x" * 10_000_000)
    assert "staging server" in outcome.works().out


def test_nul_bytes_and_broken_utf8_on_stdin_are_replaced(lore: Lore):
    id_ = lore("remember", "-", stdin=b"one \x00 two \xff\xfe three \xc3").works().out.strip()
    text = lore("read", id_).works().out
    assert "one" in text
    assert "three" in text


@pytest.mark.skipif(sys.platform == "win32", reason="arguments are bytes on POSIX only")
def test_an_argument_that_is_not_utf8_is_stored_with_a_replacement(seeded: Seeded):
    run_process("remember", b"caf\xe9 opens at nine", home=seeded.home).works()
    assert "caf\ufffd opens" in seeded("search", "opens").works().out


def test_an_argument_of_100_kilobytes_is_accepted(seeded: Seeded):
    text = "The kiosk sells sandwiches. " * 4_000
    run_process("remember", text, home=seeded.home).works()
    assert "kiosk" in seeded("search", "kiosk").works().out


WORDS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["--json", "--limit", "--depth", "--yes", "--dry-run", "--kind", "--deep", "-", "--",
         "-h", "--home", "-1", "0", "99999999999999999999", "fact", "parent", "PARENT", "CHILD"]
    ),
)  # fmt: skip
SAFE = sorted({place[0] for place in PLACES.values()} - {"restore", "import", "config"})


@pytest.mark.parametrize("command", [*SAFE, "stats", "backup", "config", "embed", "model"])
def test_no_arguments_cause_a_traceback(
    seed: Seeded, tmp_path_factory: pytest.TempPathFactory, documented_codes, command: str
):
    folder = tmp_path_factory.mktemp("fuzz")
    home = Seeded(folder / "home", seed.parent, seed.child)

    @given(st.lists(WORDS, max_size=4))
    @settings(
        max_examples=8,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    def check(words: list[str]):
        arguments = fill(tuple(words), "", home)
        if command in ("backup", "model", "config") and any("/" in w for w in words):
            return
        if command == "model" and "install" in words:
            return
        outcome = home(command, *arguments)
        assert outcome.code in documented_codes, outcome

    home("remember", "something to find").works()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        check()
