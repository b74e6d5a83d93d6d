"""A new embedder: the former vectors serve until all is embedded again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lore.capture import embedding_queue
from lore.embed import open_embedder
from lore.embed.embedders import Embedders
from lore.embed.models import find_model, find_weights
from lore.memory import Memory
from lore.records import NewMessage, Part
from lore.settings import Settings
from lore.store import vectors
from lore.store.database import open_database
from tests.fakes import NOON, FakeEmbedder
from tests.waiting import eventually

OLD, NEW = "all-MiniLM-L6-v2", "lore-mini"
TEXTS = (
    "I raised the notarize timeout to 45m in .goreleaser.yaml.",
    "The ferry to the island leaves at dawn.",
    "Lemon cake needs three eggs and a warm oven.",
)
QUESTION = "When does the boat depart?"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that keeps the converted graphs for all tests here."""
    model = find_model("local", OLD)
    assert model is not None
    if find_weights(Settings(home=Path("/nonexistent")), model) is None:
        pytest.skip(f"the weights are not installed (package {model.package})")
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def home(tmp_path: Path, models: Path) -> Path:
    """A memory whose items have vectors of the old model."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "models").symlink_to(models)
    with open_memory(home, OLD) as memory:
        say(memory, *TEXTS)
        memory.maintenance.embed_waiting()
    return home


def open_memory(home: Path, model: str = NEW) -> Memory:
    return Memory.open(config=Settings(home=home, embed_model=model))


def say(memory: Memory, *texts: str, session: str = "talk") -> list[str]:
    new = [NewMessage("user", (Part("text", text),), NOON, key=text) for text in texts]
    return memory.capture(session, new)


def count_vectors(memory: Memory) -> dict[str, int]:
    """Return how many items have a vector of each model."""
    sql = (
        "SELECT e.identity, count(*) FROM vectors v JOIN embedders e ON e.n = v.embedder_n"
        " GROUP BY 1"
    )
    with memory.database.read() as db:
        return {identity.split("@")[0].split("/")[0]: count for identity, count in db.rows(sql)}


def cosine_of_best(memory: Memory) -> float:
    sources = memory.sources
    _, scores = sources.nearest(sources.embed_query(QUESTION), 1)
    return float(scores[0])


def test_the_former_vectors_serve_until_all_is_embedded_again(home: Path):
    with open_memory(home, OLD) as memory:
        old_cosine = cosine_of_best(memory)
    with open_memory(home) as memory:
        assert memory.sources.embedder.name == OLD
        assert cosine_of_best(memory) == pytest.approx(old_cosine)
        assert memory.recall(QUESTION).hits[0].text == TEXTS[1]
        assert count_vectors(memory) == {OLD: 3}
        queues = memory.maintenance.queues()
        assert queues.waiting == 0
        assert (queues.embedder.split("/")[0], queues.next_waiting) == (OLD, 3)
        assert queues.next_embedder.startswith(NEW)

        assert memory.maintenance.embed_waiting() == 3
        assert memory.sources.embedder.name == NEW
        assert memory.recall(QUESTION).hits[0].text == TEXTS[1]
        assert cosine_of_best(memory) != pytest.approx(old_cosine)
        assert count_vectors(memory) == {NEW: 3}
        queues = memory.maintenance.queues()
        assert (queues.next_embedder, queues.next_waiting, queues.jobs_pending) == ("", 0, 0)
        assert memory.maintenance.embed_waiting() == 0


def test_new_items_are_found_by_both_models_while_all_is_embedded_again(home: Path):
    with open_memory(home) as memory:
        [id_] = say(memory, "Ships sail from the harbour in the morning.", session="later")
        assert id_ in [hit.id for hit in memory.recall(QUESTION).hits]
        sources = memory.sources
        with memory.database.read() as db:
            assert vectors.count_pending(db) == 0
            assert vectors.count_pending(db, following=True) == 4
        assert len(sources.nearest(sources.embed_query(QUESTION), 9)[0]) == 4
        memory.maintenance.embed_waiting()
        assert count_vectors(memory) == {NEW: 4}


def test_a_changed_fragment_has_no_stale_vector_after_the_change(home: Path):
    with open_memory(home, OLD) as memory:
        id_ = memory.store("Whales breathe air")
        memory.maintenance.embed_waiting()
    with open_memory(home) as memory:
        memory.maintenance.embed_waiting(within_s=0)
        memory.knowledge.update(id_, "Trains run on rails")
        memory.maintenance.embed_waiting()
        assert count_vectors(memory) == {NEW: 4}
        sources = memory.sources
        ns, scores = sources.nearest(sources.embed_query("Trains run on rails"), 1)
        assert scores[0] > 0.99
        assert len(ns) == 1


def test_forgetting_removes_both_vectors(home: Path):
    with open_memory(home) as memory, memory.database.read() as db:
        ns = db.column("SELECT n FROM items ORDER BY n")
    with open_memory(home) as memory:
        new = memory.context.embedders.wanted
        rows = new.embed(TEXTS)
        memory.database.write(
            lambda db: vectors.put(
                db, vectors.find_embedder(db, new.identity) or 0, ns[:2], [rows[:1], rows[1:2]]
            )
        )
        assert count_vectors(memory) == {OLD: 3, NEW: 2}
        memory.forget(match="notarize")
        assert count_vectors(memory) == {OLD: 2, NEW: 1}
        assert len(memory.sources.vector_index()) == 2
        memory.maintenance.embed_waiting()
        assert count_vectors(memory) == {NEW: 2}
        sources = memory.sources
        assert len(sources.nearest(sources.embed_query(QUESTION), 9)[0]) == 2


def test_going_back_drops_what_the_other_model_had_embedded(home: Path):
    with open_memory(home, OLD) as memory:
        say(memory, *(f"Note number {i} about nothing much." for i in range(80)), session="more")
        memory.maintenance.embed_waiting()
    with open_memory(home) as memory:
        assert memory.maintenance.embed_waiting(within_s=0) < 83
        assert count_vectors(memory)[NEW] > 0
    with open_memory(home, OLD) as memory:
        assert memory.maintenance.embed_waiting() == 0
        assert count_vectors(memory) == {OLD: 83}
        assert memory.maintenance.queues().next_embedder == ""


def test_another_process_uses_the_new_vectors_as_soon_as_they_serve(home: Path):
    with open_memory(home) as daemon, open_memory(home) as other:
        used = other.sources
        query = used.embed_query(QUESTION)
        assert len(used.nearest(query, 3)[0]) == 3
        daemon.maintenance.embed_waiting()
        # Whoever still has a question of the former model finds nothing, rather than nonsense.
        assert len(used.nearest(query, 3)[0]) == 0
        assert not used.cosines(query, daemon.sources.vector_index().numbers()).any()
        assert other.sources.embedder.name == NEW
        assert other.recall(QUESTION).hits[0].text == TEXTS[1]


def test_a_process_with_other_settings_follows_too(home: Path):
    with open_memory(home, OLD) as daemon:
        with open_memory(home) as memory:
            memory.maintenance.embed_waiting()
        assert daemon.sources.embedder.name == NEW
        assert daemon.recall(QUESTION).hits[0].text == TEXTS[1]
        [id_] = say(daemon, "Ships sail from the harbour in the morning.", session="later")
        assert id_ in [hit.id for hit in daemon.recall(QUESTION).hits]
        daemon.maintenance.embed_waiting()
        assert count_vectors(daemon) == {NEW: 4}


def test_a_model_that_is_not_at_hand_cannot_serve_and_that_is_said(tmp_path: Path, models: Path):
    home = tmp_path / "home"
    with Memory.open(config=Settings(home=home), embedder=FakeEmbedder("hosted", 384)) as memory:
        say(memory, *TEXTS)
        memory.maintenance.embed_waiting()
    shutil.rmtree(home / "models", ignore_errors=True)  # that of the pair model
    (home / "models").symlink_to(models)
    with open_memory(home) as memory:
        assert "'hosted', which is not at hand" in memory.notice
        assert memory.sources.embedder.name == NEW
        assert memory.maintenance.queues().waiting == 3
        memory.maintenance.embed_waiting()
        assert count_vectors(memory) == {NEW: 3}
        assert memory.recall(QUESTION).hits[0].text == TEXTS[1]


def test_a_former_version_of_a_model_serves_if_its_graph_is_cached(home: Path):
    folder = home / "models"
    [old_graph] = (folder / OLD).glob("float32-*.onnx")
    version = folder / NEW / "float32-0123456789ab-1"
    with open_memory(home) as memory:
        new_identity = memory.context.embedders.wanted.identity
    version.parent.mkdir(exist_ok=True)  # another test may have made it
    # A graph names its data file; the new name is as long as the old one.
    shutil.copy(old_graph.with_suffix(".data"), version.with_suffix(".data"))
    graph = old_graph.read_bytes().replace(old_graph.stem.encode(), version.name.encode())
    version.with_suffix(".onnx").write_bytes(graph)
    former = new_identity.replace(new_identity.split("@")[1].split("/")[0], "01234567")
    with open_memory(home, OLD) as memory:
        memory.database.write(
            lambda db: db.run(
                "UPDATE embedders SET identity = :former WHERE identity LIKE :old",
                former=former,
                old=f"{OLD}%",
            )
        )
        memory.database.write(
            lambda db: db.run(
                "UPDATE meta SET value = :former WHERE key = 'embedder'", former=former
            )
        )
    with open_memory(home) as memory:
        assert memory.sources.embedder.identity == former
        assert memory.recall(QUESTION).hits[0].text == TEXTS[1]
        memory.maintenance.embed_waiting()
        assert memory.sources.embedder.identity == new_identity
    version.with_suffix(".onnx").unlink()


def test_a_read_only_memory_searches_the_former_vectors(home: Path):
    config = Settings(home=home, embed_model=NEW)
    database = open_database(config.database, busy_timeout_s=5, backups=None, read_only=True)
    embedders = Embedders(open_embedder(config).embedder, config, owns_wanted=True)
    serving = embedding_queue.adopt_embedder(database, embedders)
    assert (serving.embedder.name, serving.notice) == (OLD, "")
    embedders.close()
    database.close()


def test_former_vectors_are_deleted_also_after_a_kill_between_switch_and_deletion(home: Path):
    with open_memory(home) as memory:
        wanted = memory.context.embedders.wanted
        embedding_queue.embed_waiting(memory.database, wanted, None, following=True)
        assert count_vectors(memory) == {OLD: 3, NEW: 3}
    with open_memory(home) as memory:
        assert memory.sources.embedder.name == NEW
        assert memory.maintenance.stats().vectors == 3
        memory.maintenance.embed_waiting()
        assert count_vectors(memory) == {NEW: 3}


def test_a_mostly_unembedded_memory_changes_at_once(home: Path):
    with open_memory(home, OLD) as memory:
        say(memory, *(f"Note number {i}." for i in range(8)), session="more")
    with open_memory(home) as memory:
        assert memory.sources.embedder.name == NEW
        assert memory.notice == ""
        assert memory.maintenance.embed_waiting() == 11
        assert count_vectors(memory) == {NEW: 11}


EMBED = """
import sys
from pathlib import Path
from lore.memory import Memory
from lore.settings import Settings
with Memory.open(config=Settings(home=Path(sys.argv[1]), embed_model=sys.argv[2])) as memory:
    memory.maintenance.embed_waiting()
"""


def test_a_kill_at_any_instant_loses_nothing_and_the_job_goes_on(home: Path):
    with open_memory(home, OLD) as memory:
        # questions: statements would be compared with each other, which takes longer than the rest
        say(memory, *(f"What is note number {i} about?" for i in range(400)), session="more")
        memory.maintenance.embed_waiting()
        assert count_vectors(memory) == {OLD: 403}
    with open_memory(home) as memory:
        for kill in range(6):
            before = count_vectors(memory).get(NEW, 0)
            job = subprocess.Popen([sys.executable, "-c", EMBED, str(home), NEW])
            eventually(
                lambda: job.poll() is not None or count_vectors(memory).get(NEW, 0) > before  # noqa: B023
            )
            if job.poll() is None:
                os.kill(job.pid, signal.SIGKILL)
            job.wait()
            counts = count_vectors(memory)
            assert 403 in counts.values(), kill
            assert counts.get(NEW, 0) > before or counts == {NEW: 403}
            assert memory.recall(QUESTION).hits[0].text == TEXTS[1]
        memory.maintenance.embed_waiting()
        assert count_vectors(memory) == {NEW: 403}
        sources = memory.sources
        assert len(sources.nearest(sources.embed_query(QUESTION), 500)[0]) == 403
