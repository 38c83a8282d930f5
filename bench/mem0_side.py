"""mem0's side of bench_mem0.py, run by the Python that has mem0: the same facts and queries
from standard input, timings as JSON.

The model answers at once with the facts it is to find, the embedder at once with a vector made
of the words: only mem0's own work is measured. Default store: Qdrant on disk, in this process.
"""

import importlib
import json
import os
import sys
import tempfile
import time
import uuid
import zlib
from typing import Any

SIZE = 384


class Model:
    def __init__(self) -> None:
        self.facts: list[str] = []

    def generate_response(self, *_args: object, **_named: object) -> str:
        return json.dumps(
            {
                "memory": [
                    {"id": str(at), "text": text} for at, text in enumerate(self.facts)
                ]
            }
        )


class Embedder:
    def embed(self, text: str, _action: str | None = None) -> list[float]:
        vector = [0.0] * SIZE
        for word in text.lower().split():
            vector[zlib.crc32(word.encode()) % SIZE] += 1.0
        return vector

    def embed_batch(
        self, texts: list[str], action: str | None = None
    ) -> list[list[float]]:
        return [self.embed(text, action) for text in texts]


def open_memory(folder: str) -> Any:
    store = {
        "collection_name": "bench",
        "path": f"{folder}/qdrant",
        "embedding_model_dims": SIZE,
        "on_disk": True,
    }
    # only there in mem0's own environment
    memory = importlib.import_module("mem0").Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "llm": {
                "provider": "openai",
                "config": {"api_key": "none", "model": "none"},
            },
            "embedder": {
                "provider": "openai",
                "config": {"api_key": "none", "model": "none", "embedding_dims": SIZE},
            },
            "history_db_path": f"{folder}/history.db",
        }
    )
    memory.llm, memory.embedding_model = Model(), Embedder()
    return memory


def run(work: dict[str, Any], folder: str) -> dict[str, Any]:
    memory = open_memory(folder)
    vectors = [memory.embedding_model.embed(text) for _, text in work["stored"]]
    for start in range(0, len(vectors), 1000):
        some = work["stored"][start : start + 1000]
        payloads = [
            {
                "data": text,
                "hash": str(start + at),
                "user_id": caller,
                "text_lemmatized": text,
            }
            for at, (caller, text) in enumerate(some)
        ]
        memory.vector_store.insert(
            vectors=vectors[start : start + 1000],
            ids=[str(uuid.uuid4()) for _ in some],
            payloads=payloads,
        )
    taken = []
    for call in work["calls"]:
        memory.llm.facts = call["facts"]
        begun, busy = time.perf_counter(), time.process_time()
        added = len(memory.add(call["messages"], user_id=call["caller"])["results"])
        taken.append((added, time.perf_counter() - begun, time.process_time() - busy))
    times, found = [], 0
    for query in work["queries"]:
        started = time.perf_counter()
        found += bool(
            memory.search(
                query["text"], filters={"user_id": query["caller"]}, top_k=10
            )["results"]
        )
        times.append(time.perf_counter() - started)
    kept = [
        keep_pair(memory, f"pair-{at}", pair) for at, pair in enumerate(work["pairs"])
    ]
    return {"taken": taken, "times": times, "found": found, "kept": kept}


def keep_pair(memory: Any, caller: str, pair: dict[str, str]) -> list[str]:
    """What is kept of two facts that one caller says one after the other."""
    for text in (pair["known"], pair["new"]):
        memory.llm.facts = [text]
        memory.add([{"role": "user", "content": text}], user_id=caller)
    found = memory.get_all(filters={"user_id": caller})["results"]
    return [item["memory"] for item in found]


if __name__ == "__main__":
    os.environ["MEM0_TELEMETRY"] = "False"
    with tempfile.TemporaryDirectory(prefix="mem0-bench-") as place:
        os.environ["MEM0_DIR"] = place
        print("\n" + json.dumps(run(json.load(sys.stdin), place)))
