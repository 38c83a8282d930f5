"""The vectors of an emulated embedder: texts that share words point the same way."""

import re
import zlib
from typing import Any

from aftercall.lab.models.script import Asked

SIZE = 64
_WORD = re.compile(r"\w+")


def embed(text: str) -> list[float]:
    vector = [0.0] * SIZE
    for word in _WORD.findall(text.lower()):
        vector[zlib.crc32(word.encode()) % SIZE] += 1.0
    return vector


def embeddings_body(asked: Asked) -> dict[str, Any]:
    vectors = [{"object": "embedding", "index": at, "embedding": embed(text)} for at, (_, text) in enumerate(asked.messages)]
    used = sum(len(text) for _, text in asked.messages) // 4
    return {"object": "list", "data": vectors, "model": asked.model, "usage": {"prompt_tokens": used, "total_tokens": used}}
