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
from aftercall.errors import AftercallError, ConfigError
from aftercall.log import get_logger
from aftercall.memory.passages.store import Look, fetch_vectors, find_unembedded, keep_vectors
from aftercall.model.passages import Where
from aftercall.settings import OpenAISettings

BATCH = 64

log = get_logger("embedding")


class Embedder(Protocol):
    name: str
    """Vectors of different names are never compared."""

    def embed(self, texts: list[str]) -> Sequence[Sequence[float]]:
        """May raise an AftercallError: then search goes by words, and new passages get their vectors later."""
        ...


def load_embedder(path: str, settings: OpenAISettings) -> Embedder | None:
    """`openai:MODEL`, `openai-compatible:MODEL`, or what `module:factory` makes; None for an empty path."""
    if not path:
        return None
    module, _, factory = path.partition(":")
    if module in ("openai", "openai-compatible") and factory:
        from aftercall.memory.openai_embedder import OpenAIEmbedder  # noqa: PLC0415 - most installations search by words alone

        return OpenAIEmbedder(module, factory, settings)
    try:
        made: Embedder = getattr(importlib.import_module(module), factory)()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(f"memory.embedder: {path!r} cannot be used ({error}); name it as openai:MODEL or module:factory") from None
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


def embed_query(embedder: Embedder, text: str) -> bytes | None:
    """The vector of a query; None where there is none. An embedder that is away does not stop a search: the words are there."""
    if not text.strip():
        return None
    try:
        return pack(embedder.embed([text])[0])
    except AftercallError as error:
        log.warning("search goes by words alone", embedder=embedder.name, error=error.code)
        return None


def find_near(look: Look, model: str, wanted: bytes, where: Where, count: int) -> dict[int, float]:
    """The passages nearest in meaning, each with its cosine; those that point away are left out."""
    rows = [(n, bytes(vector)) for n, vector in fetch_vectors(look, model, where) if len(vector) == len(wanted)]
    if not rows:
        return {}
    near = zip(_cosines(wanted, [vector for _, vector in rows]), (n for n, _ in rows), strict=True)
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
