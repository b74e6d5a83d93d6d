"""What each command says to a person and to a program."""

import contextlib
import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lore.memory import Memory
from lore.records import NewMessage, Part
from lore.settings import load
from tests.cli.conftest import Lore, Seeded, run_process
from tests.recall.talk import say

WHOLE_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
JSON_KEYS = {
    ("recall", "heron"): {
        "question", "hits", "standing", "tokens", "considered", "notice", "fates", "relevant",
        "confidence",
    },
    ("ask", "heron"): {
        "question", "text", "citations", "strength", "notice", "written_by", "nearest",
    },
    ("stats",): {
        "path", "bytes", "messages", "distillations", "fragments", "edges", "sessions",
        "entities", "standing", "vectors", "waiting", "tokens", "embedder", "journal",
        "projects", "jobs", "notice",
    },
    ("log", "PARENT"): {"current", "former"},
    ("diff", "PARENT"): {"from", "to", "diff"},
    ("why", "PARENT"): {
        "reading", "sources", "origins", "versions", "numbers", "superseded_by", "supersedes",
        "times_recalled", "allowed",
    },
    ("update", "CHILD", "other words"): {"id", "version"},
    ("delete", "CHILD"): {"deleted"},
    ("undo",): {"undone", "id"},
    ("link", "PARENT", "CHILD"): {"source", "target", "kind"},
    ("supersede", "PARENT", "CHILD"): {"superseded", "by"},
    ("forget", "CHILD", "--yes"): {
        "forgotten", "dry_run", "ids", "sessions", "projects", "task_records",
    },
    ("revoke", "--origin", "web"): {
        "messages", "fragments", "distillations", "standing", "dry_run",
    },
    ("remember", "x"): {
        "id", "outcome", "title", "parent", "resembles", "corrected", "contradicts",
        "redacted",
    },
    ("backup",): {"file"},
    ("embed",): {"embedded"},
    ("model", "status"): {"identity", "dimension", "source", "notice"},
}  # fmt: skip
LISTS = {
    ("search", "heron"): {"id", "title", "score", "depth", "kind", "tokens", "breadcrumb"},
    ("roots",): {"id", "title", "kind", "depth", "tokens", "children"},
    ("read", "CHILD"): {"id", "type", "text", "parent", "children", "edges", "deleted"},
    ("explore", "PARENT"): {"title", "below"},
    ("traverse", "PARENT"): {"id", "title", "children"},
    ("doctor",): {"name", "state", "detail", "remedy"},
    ("config",): {"key", "value", "source", "doc", "default", "env", "project", "allowed"},
}


def named(words: tuple[str, ...], home: Seeded) -> list[str]:
    names = {"PARENT": home.parent, "CHILD": home.child}
    return [names.get(word, word) for word in words]


@pytest.mark.parametrize("command", JSON_KEYS, ids=lambda c: c[0])
def test_json_has_stable_keys(seeded: Seeded, command: tuple[str, ...]):
    found = json.loads(seeded(*named(command, seeded), "--json").works().out)
    assert set(found) == JSON_KEYS[command]


@pytest.mark.parametrize("command", LISTS, ids=lambda c: c[0])
def test_json_lists_have_stable_keys(seeded: Seeded, command: tuple[str, ...]):
    found = json.loads(seeded(*named(command, seeded), "--json").works().out)
    assert found
    assert all(set(entry) >= LISTS[command] for entry in found)


@pytest.mark.parametrize(
    "command",
    [c for c in (*JSON_KEYS, *LISTS) if c[0] not in ("remember", "config")],
    ids=lambda c: c[0],
)
def test_people_see_short_ids_and_no_python(seeded: Seeded, command: tuple[str, ...]):
    out = seeded(*named(command, seeded)).works().out
    assert out.strip()
    assert not WHOLE_ID.search(out)
    assert not re.search(r"\b(None|True|False)\b|datetime\(|<class|\{'|\[\]", out)
    assert not re.search(r"\b1 (records|items|tokens|hits|times|versions)\b", out)


def test_a_printed_short_id_is_accepted(seeded: Seeded):
    short = seeded("search", "heron").works().out.split()[0]
    assert len(short) < len(seeded.child)
    assert "heron" in seeded("read", short).works().out


def test_an_ambiguous_prefix_is_refused_with_the_matches(seeded: Seeded):
    common = next(
        seeded.parent[:length]
        for length in range(len(seeded.parent), 0, -1)
        if seeded.child.startswith(seeded.parent[:length])
    )
    if len(common) < 8:
        pytest.skip("the two ids differ too early")
    outcome = seeded("read", common)
    assert outcome.code == 2
    assert "matches several ids" in outcome.err
    assert "heron" in outcome.err


@pytest.mark.parametrize(
    ("id_", "code"),
    [
        ("abc", 2),
        ("", 2),
        ("ffffffff-ffff", 3),
        ("٠١٢٣٤٥٦٧٨٩", 2),
        ("%%%%%%%%", 2),
        ("x" * 500, 2),
    ],
)
@pytest.mark.parametrize("command", ["read", "why", "log", "diff", "delete", "traverse"])
def test_an_id_that_names_nothing_is_an_error(seeded: Seeded, command: str, id_: str, code: int):
    outcome = seeded(command, id_).fails_with(code)
    assert "lore search" in outcome.err


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "99999999999999999999", "x", "1.5", ""])
@pytest.mark.parametrize("command", ["recall", "search", "sessions", "roots"])
def test_a_limit_out_of_range_is_a_usage_error(seeded: Seeded, command: str, limit: str):
    outcome = seeded(command, "heron", "--limit", limit).fails_with(2)
    assert f"'lore {command} --help'" in outcome.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("recall",),
        ("recall", "--nonsense"),
        ("link", "a"),
        ("model", "nonsense"),
        ("--nonsense",),
        ("explore", "x", "--max-depth", "-1"),
        ("config", "recall.max_hits", "5", "6"),
        ("config", "--unset"),
    ],
)
def test_a_usage_error_exits_with_2(seeded: Seeded, arguments: tuple[str, ...]):
    seeded(*arguments).fails_with(2)


@pytest.mark.parametrize("command", [(), ("model",), ("eval",), ("-h",), ("recall", "--help")])
def test_help_is_shown_without_a_command(lore: Lore, command: tuple[str, ...]):
    assert lore(*command).works().out.startswith("Usage: lore")


def test_why_shows_sources_strength_and_history(seeded: Seeded):
    seeded("recall", "deploys").works()
    seeded("supersede", seeded.parent, seeded.child).works()
    out = seeded("why", seeded.parent).works().out
    assert "stored by hand" in out
    assert re.search(r"importance +0\.50", out)
    assert re.search(r"trust +3 ", out)
    assert "recalled 1 time\n" in out
    assert "1 former version: 'lore log" in out
    assert "superseded by" in out


def test_why_not_explains_why_an_item_is_missing(seeded: Seeded):
    seeded("remember", "The staging server heron has 32 GB").works()
    answer = seeded("recall", "deploys on Thursdays", "--why-not", seeded.child).works().out
    assert "What happened to" in answer
    assert any(told in answer for told in ("no candidate", "ranked", "shown as hit", "noise"))
    seeded("recall", "x", "--why-not", "ffffffff-ffff").fails_with(3)


def test_the_printed_undo_command_restores_a_deleted_fragment(seeded: Seeded):
    out = seeded("delete", seeded.child).works().out
    assert "Nothing found." in seeded("search", "heron").works().out
    (command,) = re.findall(r"'lore (undo \S+)'", out)
    seeded(*command.split()).works()
    assert "heron" in seeded("search", "heron").works().out


def test_undo_has_a_dry_run_and_a_redo(seeded: Seeded):
    assert "Would undo: update" in seeded("undo", "--dry-run").works().out
    assert "Thursdays" in seeded("read", seeded.parent).works().out
    assert "lore undo --redo" in seeded("undo").works().out
    assert "Tuesdays" in seeded("read", seeded.parent).works().out
    assert "Would redo: update" in seeded("undo", "--redo", "--dry-run").works().out
    assert "Redone: update" in seeded("undo", "--redo").works().out
    assert "Thursdays" in seeded("read", seeded.parent).works().out
    seeded("undo", "--redo").fails_with(3)


def test_an_empty_id_undoes_nothing(seeded: Seeded):
    before = seeded.export()
    seeded("undo", "").fails_with(2)
    assert seeded.export() == before


def test_forget_asks_for_confirmation(seeded: Seeded):
    before = seeded.export()
    assert "--yes" in seeded("forget", "--match", "heron").fails_with(2).err
    told = seeded("forget", "--match", "heron", "--dry-run").works().out
    assert "1 record would be" in told
    assert "heron" in told.splitlines()[0].lower()
    assert "is short" in seeded("forget", "--match", "he", "--dry-run").works().err
    assert seeded.export() == before
    assert "1 record deleted for good" in seeded("forget", "--match", "HERON", "-y").works().out
    assert "Nothing contains that" in seeded("forget", "--match", "heron", "-y").works().out


def test_forget_match_clears_session_names_and_reports_project_names(seeded: Seeded):
    config = load({"LORE_EMBED_PROVIDER": "none"}, home=seeded.home).settings
    with Memory.open(config=config) as memory:
        say(memory, "s", "good morning", title="The Okapi account", project="/code/okapi-site")
    told = seeded("forget", "--match", "okapi", "--dry-run").works().out
    assert "would lose its name: The Okapi account" in told
    seeded("forget", "--match", "okapi").fails_with(2)
    told = seeded("forget", "--match", "okapi", "--yes").works().out
    assert "lost its name" in told
    assert "/code/okapi-site" in told
    assert "lore forget --project" in told
    assert "Okapi" not in seeded("session", "s").works().out


def test_session_leaves_out_text_that_the_agent_inserted(seeded: Seeded):
    config = load({"LORE_EMBED_PROVIDER": "none"}, home=seeded.home).settings
    beside = Part("aside", "Today is Friday.")
    when = datetime(2026, 5, 1, tzinfo=UTC)
    with Memory.open(config=config) as memory:
        said = Part("text", "good morning")
        memory.capture(
            "s", [NewMessage("user", parts, when) for parts in ((beside,), (said, beside))]
        )
    read = seeded("session", "s").works()
    assert "good morning" in read.out
    assert "Friday" not in read.out
    assert read.out.count("user") == 1
    assert "2 asides" in read.err
    assert seeded("session", "s", "--asides").works().out.count("[aside] Today is Friday.") == 2
    assert len(json.loads(seeded("session", "s", "--json").works().out)) == 2


def test_the_first_status_shows_the_budget(lore: Lore):
    assert "$0.00 of $1.00 today" in lore("status").works().out
    free = lore("status", env={"LORE_BACKGROUND_DAILY_BUDGET": "0"}).works().out
    assert "$0.00 today, no budget is set" in free


def test_forget_needs_exactly_one_target(seeded: Seeded):
    seeded("forget").fails_with(2)
    seeded("forget", seeded.child, "--match", "x", "--yes").fails_with(2)


def test_forget_match_clears_the_query_log(seeded: Seeded):
    seeded("recall", "canary-in-a-question").works()
    assert b"canary-in-a-question" in _bytes(seeded)
    seeded("forget", "--match", "canary-in-a-question", "--yes").works()
    assert b"canary-in-a-question" not in _bytes(seeded)


def _bytes(home: Lore) -> bytes:
    return b"".join(path.read_bytes() for path in home.home.rglob("*") if path.is_file())


def test_recall_shows_three_standing_instructions_and_counts_the_rest(lore: Lore):
    config = load({"LORE_EMBED_PROVIDER": "none"}, home=lore.home).settings
    said = ["spaces", "British spelling", "just check", "plain SQL", "UTC everywhere"]
    with Memory.open(config=config) as memory:
        memory.capture(
            "s",
            [
                NewMessage(
                    "user",
                    (Part("text", f"From now on always use {what} in this repository."),),
                    datetime(2026, 1, day, tzinfo=UTC),
                )
                for day, what in enumerate(said, 1)
            ],
            title="House rules",
        )
    listed = lore("standing").works().out.splitlines()
    assert len(listed) == len(said)
    out = lore("recall", "what is used in this repository?").works().out
    assert out.count(" · From now on") == 3
    assert "… and 2 more: lore standing" in out
    out = lore("recall", "which spelling?").works().out
    assert out.count(" · From now on") == 1
    assert "Standing" not in lore("recall", "where is the harbour?").works().out
    assert len(json.loads(lore("recall", "the harbour?", "--json").works().out)["standing"]) == 5
    assert "House rules" in lore("sessions", "spelling").works().out


def test_explain_shows_scores(seeded: Seeded):
    out = seeded("recall", "staging server", "--explain").works().out
    assert re.search(r"adds [+-]\d", out)


def test_nothing_found_is_no_error(seeded: Seeded):
    for command in ("search", "sessions", "roots", "explore"):
        assert "Nothing found." in seeded(command, "zzzzqqqq").works().out
    assert json.loads(seeded("search", "zzzzqqqq", "--json").works().out) == []


def test_evaluation_without_data_is_an_error(lore: Lore):
    lore("eval", "retrieval", "--data", str(lore.home)).fails_with(10)


def test_the_same_key_stores_once(lore: Lore):
    first = lore("remember", "x", "--key", "k").works().out
    assert lore("remember", "x", "--key", "k").works().out == first


def test_irrelevant_hits_are_shown_as_nearest(seeded: Seeded):
    query = "zxqv blorf wubnar quatlorp vexgri muptok heron"
    out = seeded("recall", query).works().out
    assert out.startswith("Nothing relevant found; nearest:\n1. ")
    assert '"relevant": false' in seeded("recall", query, "--json").works().out
    assert seeded("recall", "heron").works().out.startswith("1. ")


def test_ask_quotes_one_answer_with_its_source(seeded: Seeded):
    out = seeded("ask", "which", "staging", "server?").works().out
    quoted, gap, source, footer = out.splitlines()
    assert (quoted, gap) == ("“The staging server is called heron” [1]", "")
    assert re.fullmatch(r"\[1\] user · \d{4}-\d\d-\d\d · [0-9a-f-]{8,}", source)
    assert footer.startswith("Confidence: ")
    assert seeded("ask", "which staging server?").works().out == out


def test_ask_refuses_in_two_lines_and_is_no_failure(seeded: Seeded):
    query = "zxqv blorf wubnar quatlorp vexgri muptok heron"
    refusal, nearest = seeded("ask", query).works().out.splitlines()
    assert refusal == "Nothing in memory answers this."
    assert nearest.startswith("Nearest: “The staging server is called heron” user · ")
    assert json.loads(seeded("ask", query, "--json").works().out)["strength"] == "none"


def test_ask_is_limited_as_recall_is(seeded: Seeded):
    seeded("ask", "heron", "--session", "no-such-session").fails_with(3)
    seeded("ask", "heron", "--project", "no-such-project").fails_with(3)
    assert "heron" in seeded("ask", "heron", "--everywhere").works().out


def test_ask_says_so_if_the_chat_is_not_available(seeded: Seeded):
    outcome = seeded("ask", "heron", env={"LORE_CHAT_PROVIDER": "ollama"}).works()
    assert "is called heron” [1]" in outcome.out
    assert outcome.err.startswith("lore: ")


def test_remember_applies_to_the_current_repository(lore: Lore, tmp_path: Path):
    repository, plain = tmp_path / "tides", tmp_path / "plain"
    for folder in (repository / ".git", repository / "docs", plain):
        folder.mkdir(parents=True)
    (repository / ".git" / "refs").mkdir()
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    with contextlib.chdir(repository / "docs"):
        here = lore("remember", "Tides are printed on Mondays").works()
        lore("remember", "The moon is full on the 24th", "--everywhere").works()
        lore("remember", "y", "--everywhere", "--project", "tides").fails_with(2)
    with contextlib.chdir(plain):
        everywhere = lore("remember", "Lamps are lit at dusk").works()
    assert "applies to the project" in here.err
    assert "applies to all projects" in everywhere.err
    found = json.loads(lore("recall", "tides moon lamps", "--json").works().out)["hits"]
    assert {hit["text"]: bool(hit["project_id"]) for hit in found} == {
        "Tides are printed on Mondays": True,
        "The moon is full on the 24th": False,
        "Lamps are lit at dusk": False,
    }


def test_recall_searches_the_current_repository_first(tmp_path: Path):
    facts = {
        "pier": "Deploys go through the pier script",
        "tide": "Deploys go through the tide tool",
    }
    env = {"LORE_EMBED_PROVIDER": "none"}
    for name, fact in facts.items():
        subprocess.run(["git", "init", "--quiet", str(tmp_path / name)], check=True)
        run_process("remember", fact, home=tmp_path / "home", env=env, cwd=tmp_path / name).works()

    def recall(*words: str) -> str:
        return (
            run_process("recall", *words, home=tmp_path / "home", env=env, cwd=tmp_path / "pier")
            .works()
            .out
        )

    assert facts["pier"] in recall("how", "do", "deploys", "go")
    assert facts["tide"] not in recall("how", "do", "deploys", "go")
    assert facts["tide"] in recall("how", "do", "deploys", "go", "--everywhere")
    assert facts["tide"] in recall("the", "tide", "tool"), "nothing is found in the repository"


def test_a_suggested_rule_is_decided_on_by_its_id(lore: Lore):
    config = load({"LORE_EMBED_PROVIDER": "none"}, home=lore.home).settings
    text = "Stop adding comments to every line."
    with Memory.open(config=config) as memory:
        said = NewMessage("user", (Part("text", text),), datetime(2026, 1, 1, tzinfo=UTC))
        memory.capture("s", [said])
        (one,) = memory.search.instructions()
        assert one.state == "suggested"
        assert memory.search.standing_instructions() == []
    assert "Maybe rules" in lore("standing").works().out
    assert "cannot be reviewed without a terminal" in lore("standing", "--review").err
    assert lore("standing", "--confirm", one.id).works().out == f"Stands: {text}\n"
    assert "Maybe rules" not in lore("standing").works().out
    lore("standing", "--reject", one.id).works()
    assert "No standing instructions yet." in lore("standing").works().out
    assert text in lore("standing", "--rejected").works().out


def test_remember_keeps_a_lasting_rule_as_one(lore: Lore):
    lore("remember", "From now on we always use UTC").works()
    lore("remember", "The API listens on 8080").works()
    assert "always use UTC" in (standing := lore("standing").works().out)
    assert "8080" not in standing
    refused = lore("remember", "Never commit to main", "--kind", "rule").fails_with(2)
    assert "preference" in refused.err


def test_remember_says_that_a_secret_was_redacted(lore: Lore):
    secret = "ghp_u8A56hF99p0NDXCCvOYRUGDWwgtaEVPXgquP"
    stored = lore("remember", f"The token of the harbour is {secret}").works()
    assert "A secret in the text was redacted" in stored.err
    assert "redacted" not in lore("remember", "The harbour has two quays").works().err


def test_a_missing_argument_is_described(lore: Lore):
    assert "Missing argument 'id': Id of a session" in lore("log").fails_with(2).err


def test_undo_says_where_it_stops(lore: Lore):
    for text in ("Walruses swim", "Numbats dig"):
        lore("remember", text).works()
    lore("forget", "--match", "Numbats", "--yes").works()
    assert "Undo stops at the last 'lore forget'" in lore("undo").fails_with(2).err


def test_what_is_no_export_imports_nothing(lore: Lore, tmp_path: Path):
    (tmp_path / "x.json").write_text("nonsense")
    refused = lore("import", str(tmp_path / "x.json")).fails_with(2).err
    assert "not an export of Lore" in refused
    assert "everything before it was imported" not in refused
