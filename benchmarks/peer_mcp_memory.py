# /// script
# requires-python = ">=3.11"
# dependencies = ["mcp-memory-service==12.2.0"]
# ///
"""Rank documents with mcp-memory-service, in an environment of its own; `peers.py` runs this.

Documents are stored with `store_batch`, which skips texts that are already stored. Questions are
asked by `retrieve`, its default search by meaning, and by `retrieve_hybrid`. Vectors come from the
embeddings API that the input names.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def main() -> None:
    """Read tasks, write the ranked places of documents for every question."""
    tasks_path, ranks_path = map(Path, sys.argv[1:3])
    content = json.loads(tasks_path.read_text("utf-8"))
    with tempfile.TemporaryDirectory(prefix="peer-mcp-memory-") as scratch:
        os.environ |= {
            "HOME": scratch,
            "MCP_MEMORY_STORAGE_BACKEND": "sqlite_vec",
            "MCP_EXTERNAL_EMBEDDING_URL": f"{content['embeddings']}/embeddings",
            "MCP_EXTERNAL_EMBEDDING_MODEL": content["model"],
        }
        logging.disable(logging.WARNING)  # errors are logged: retrieve returns nothing after one
        ranks: dict[str, list[list[list[int]]]] = {
            "mcp-memory-service": [],
            "mcp-memory-service hybrid": [],
        }
        for number, task in enumerate(content["tasks"], 1):
            path = Path(scratch) / f"{number}.db"
            semantic, hybrid = asyncio.run(_rank(task, path, content["limit"]))
            ranks["mcp-memory-service"].append(semantic)
            ranks["mcp-memory-service hybrid"].append(hybrid)
            print(f"mcp-memory-service: {number}/{len(content['tasks'])}", file=sys.stderr)
    ranks_path.write_text(json.dumps(ranks), "utf-8")


async def _rank(
    task: dict[str, Any], path: Path, limit: int
) -> tuple[list[list[int]], list[list[int]]]:
    from mcp_memory_service.models.memory import Memory
    from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage
    from mcp_memory_service.utils.hashing import generate_content_hash

    storage = SqliteVecMemoryStorage(str(path))
    await storage.initialize()
    places: dict[str, int] = {}
    memories = []
    for place, document in enumerate(task["documents"]):
        hash_ = generate_content_hash(document["text"])
        if hash_ not in places:
            places[hash_] = place
            memories.append(
                Memory(
                    document["text"], hash_, created_at=document["at"], updated_at=document["at"]
                )
            )
    for start in range(0, len(memories), 500):
        for stored, message in await storage.store_batch(memories[start : start + 500]):
            if not stored:
                sys.exit(f"mcp-memory-service did not store a document: {message}")
    semantic, hybrid = [], []
    for question in task["questions"]:
        found = await storage.retrieve(question, limit)
        if not found:
            sys.exit("mcp-memory-service returned nothing: its log names the error")
        semantic.append([places[hit.memory.content_hash] for hit in found])
        fused = await storage.retrieve_hybrid(question, limit)
        hybrid.append([places[hit.memory.content_hash] for hit in fused])
    await storage.close()
    return semantic, hybrid


if __name__ == "__main__":
    main()
