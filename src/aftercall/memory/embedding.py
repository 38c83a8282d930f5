"""Optional: nearness in meaning beside the words. Off unless an embedder is configured.

Vectors are plain columns, compared within the caller's own rows; no extension of a database is needed.
"""

import importlib
from array import array
from collections.abc import Sequence
from math import sqrt
from operator import mul
from typing import Any, Protocol

from aftercall.db.connect import Database
from aftercall.errors import ConfigError
from aftercall.memory.passages.store import Look, fetch_vectors, find_unembedded, keep_vectors
from aftercall.model.passages import Where

BATCH = 64


class Embedder(Protocol):
    name: str
    """Vectors of different names are never compared."""

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


def load_embedder(path: str) -> Embedder | None:
    """What `module:factory` makes; None for an empty path."""
    if not path:
        return None
    module, _, factory = path.partition(":")
    try:
        made: Embedder = getattr(importlib.import_module(module), factory)()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(f"memory.embedder: {path!r} cannot be used ({error}); name it as module:factory") from None
    return made


def embed_new(database: Database, embedder: Embedder) -> int:
    """Give every passage its vector that has none yet; returns how many. May be cut off anywhere and done again."""
    count = 0
    while True:
        with database.read() as connection:
            found = find_unembedded(connection, embedder.name, BATCH)
        if not found:
            return count
        vectors = embedder.embed([text for _, text in found])
        with database.write() as connection:
            keep_vectors(connection, embedder.name, [(n, pack(vector)) for (n, _), vector in zip(found, vectors, strict=True)])
        count += len(found)


def find_near(look: Look, embedder: Embedder, text: str, where: Where, count: int) -> dict[int, float]:
    """The passages nearest in meaning, each with its cosine; those that point away are left out."""
    rows = fetch_vectors(look, embedder.name, where)
    if not rows or not text.strip():
        return {}
    wanted = pack(embedder.embed([text])[0])
    near = zip(_cosines(wanted, [bytes(vector) for _, vector in rows]), (n for n, _ in rows), strict=True)
    return {n: cosine for cosine, n in sorted(near, reverse=True)[:count] if cosine > 0}


def pack(vector: Sequence[float]) -> bytes:
    """32-bit floats of length one, so that the cosine is a plain product."""
    length = sqrt(sum(value * value for value in vector)) or 1.0
    return array("f", [value / length for value in vector]).tobytes()


def _cosines(wanted: bytes, vectors: Sequence[bytes]) -> list[float]:
    if numpy := _find_numpy():
        table = numpy.frombuffer(b"".join(vectors), dtype="float32").reshape(len(vectors), -1)
        return [float(value) for value in table @ numpy.frombuffer(wanted, dtype="float32")]
    known = array("f", wanted)
    return [sum(map(mul, known, array("f", vector))) for vector in vectors]


def _find_numpy() -> Any:
    """Many times faster where it is installed; not asked for."""
    try:
        return importlib.import_module("numpy")
    except ImportError:
        return None
