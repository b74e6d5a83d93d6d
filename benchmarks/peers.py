"""Compare Lore with other memories on the same documents and questions.

    uv run python benchmarks/peers.py --data benchmarks/data --corpus SESSIONS --sets coding-qa

Runs mcp-memory-service and Hindsight (`peer_*.py`), each in an environment that uv makes for it and
without a language model. They use the same encoder, all-MiniLM-L6-v2, whose vectors this script
serves on loopback as an embeddings API; so do the baselines. Lore runs with it and with its own. A
result counts for every document that has the same text.

Needs uv and, the first time, a package index. mcp-memory-service needs a Python whose sqlite3 loads
extensions (`--python`). A peer that does not run is reported and left out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from lore.embed import Embedder
from lore.embed.models import MINILM
from lore.errors import LoreError
from lore.evals.datasets import MAX_RANK, RetrievalTask
from lore.evals.retrieval import (
    QueryOutcome,
    SetOutcomes,
    read_known_files,
    run_baselines,
    run_task,
    score_sets,
)
from lore.evals.vector_cache import open_cached_embedder

FOLDER = Path(__file__).parent
PEERS = {"mcp-memory-service": "peer_mcp_memory.py", "hindsight": "peer_hindsight.py"}
SETS = ("coding-qa", "chats", "locomo")

Outcomes = dict[str, list[QueryOutcome]]


def main() -> None:
    """Run Lore, the baselines and the peers, and print recall with intervals."""
    options = _options()
    try:
        files = read_known_files(options.data, options.corpus, options.sets or SETS)
    except LoreError as error:
        sys.exit(str(error))
    sets: dict[str, SetOutcomes] = {}
    with (
        open_cached_embedder(options.cache) as (own_embedder, _),
        open_cached_embedder(options.cache, MINILM) as (embedder, notice),
    ):
        if notice:
            sys.exit(notice)
        for stem, tasks in files.items():
            print(f"{stem}: Lore and baselines", file=sys.stderr)
            own = [one for task in tasks for one in run_task(task, own_embedder, "learned")]
            others: Outcomes = {
                f"lore, {MINILM}": [
                    one for task in tasks for one in run_task(task, embedder, "learned")
                ],
                **{
                    name if name == "bm25" else f"{name}, {MINILM}": outcomes
                    for name, outcomes in run_baselines(tasks, embedder).items()
                },
            }
            for peer in options.peer or PEERS:
                print(f"{stem}: {peer}", file=sys.stderr)
                arguments = ["--python", options.python or find_python()]
                if peer == "hindsight" and options.reranker != "rrf":
                    arguments += ["--with", "sentence-transformers"]
                others |= run_peer(
                    tasks, embedder, [*arguments, str(FOLDER / PEERS[peer])], options.reranker
                )
            sets[stem] = SetOutcomes(own, others, tasks[0].separate_categories)
    result = score_sets("learned", "", sets)
    print(
        json.dumps(result.as_json(), indent=1) if options.json else result.as_table_of_intervals()
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with evaluation files")
    parser.add_argument("--corpus", type=Path, help="folder of the coding sessions")
    parser.add_argument("--sets", action="append", help="only files that start with this")
    parser.add_argument("--peer", action="append", choices=PEERS, help="only this peer")
    parser.add_argument("--python", default="", help="Python for the peers")
    parser.add_argument(
        "--reranker",
        default="rrf",
        choices=("rrf", "local"),
        help="Hindsight's reranker: none (rrf), or its default, a cross-encoder from a model hub",
    )
    parser.add_argument("--cache", type=Path, help="folder for cached vectors")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def run_peer(
    tasks: Sequence[RetrievalTask], embedder: Embedder, arguments: Sequence[str], reranker: str
) -> Outcomes:
    """Run all queries through a peer; return the outcomes of each way in which it searches."""
    with (
        tempfile.TemporaryDirectory(prefix="lore-peer-") as scratch,
        serve_embeddings(embedder) as url,
    ):
        tasks_path, ranks_path = Path(scratch) / "tasks.json", Path(scratch) / "ranks.json"
        content = {**_tasks_as_json(tasks, url), "reranker": reranker}
        tasks_path.write_text(json.dumps(content), "utf-8")
        command = ["uv", "run", "--no-project", *arguments, str(tasks_path), str(ranks_path)]
        if subprocess.run(command, check=False).returncode:
            print(f"Left out, the message is above: {' '.join(command)}", file=sys.stderr)
            return {}
        ranks: dict[str, list[list[list[int]]]] = json.loads(ranks_path.read_text("utf-8"))
    return {
        name: [
            outcome
            for task, ranked in zip(tasks, by_task, strict=True)
            for outcome in outcomes_of(task, ranked)
        ]
        for name, by_task in ranks.items()
    }


def outcomes_of(task: RetrievalTask, ranks: Sequence[Sequence[int]]) -> list[QueryOutcome]:
    """Return the outcomes of ranked documents; a result shows all documents of the same text."""
    units = defaultdict(set)
    for document in task.documents:
        units[document.text].add(document.unit)
    shown = [frozenset(units[document.text]) for document in task.documents]
    return [
        QueryOutcome(
            ask.category,
            tuple(dict.fromkeys(shown[place] for place in places))[:MAX_RANK],
            ask.groups,
            took_ms=0.0,
            cluster=ask.cluster,
        )
        for ask, places in zip(task.queries, ranks, strict=True)
    ]


def _tasks_as_json(tasks: Sequence[RetrievalTask], url: str) -> dict[str, object]:
    return {
        "embeddings": url,
        "model": MINILM,
        "limit": MAX_RANK,
        "tasks": [
            {
                "documents": [
                    {"text": one.text, "at": one.at.timestamp() if one.at else 0}
                    for one in task.documents
                ],
                "questions": [ask.text for ask in task.queries],
            }
            for task in tasks
        ],
    }


def find_python() -> str:
    """Return a Python whose sqlite3 loads extensions, or the version that uv shall download."""
    check = "import sqlite3, sys; assert sys.version_info >= (3, 11); "
    check += "sqlite3.connect(':memory:').enable_load_extension(True)"
    for path in (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin")):
        if path and not subprocess.run([path, "-c", check], capture_output=True).returncode:
            return path
    return "3.12"


@contextmanager
def serve_embeddings(embedder: Embedder) -> Iterator[str]:
    """Serve an embedder on loopback as OpenAI's embeddings API, and yield its address."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            texts = json.loads(self.rfile.read(length))["input"]
            with lock:
                vectors = embedder.embed([texts] if isinstance(texts, str) else texts)
            data = [
                {"object": "embedding", "index": place, "embedding": vector.tolist()}
                for place, vector in enumerate(vectors)
            ]
            usage = {"prompt_tokens": 0, "total_tokens": 0}
            body = json.dumps({"object": "list", "model": MINILM, "data": data, "usage": usage})
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Do not log requests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    main()
