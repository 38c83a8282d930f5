"""Optional: nearness in meaning beside the words. Off unless an embedder is configured.

Vectors are plain columns, compared within the caller's own rows; no extension of a database is
needed.
"""

import importlib
from array import array
from collections.abc import Sequence
from math import sqrt
from operator import mul
from typing import Any, Protocol

import httpx2
from pydantic import BaseModel, ValidationError, field_validator

from aftercall.db.connect import Database
from aftercall.errors import (
    AftercallError,
    ConfigError,
    ModelOffForm,
    ModelRefused,
    ModelUnavailable,
    describe_network_error,
)
from aftercall.log import get_logger
from aftercall.memory.passage_store import (
    PassageSnapshot,
    fetch_vectors,
    find_unembedded,
    store_vectors,
)
from aftercall.model.passages import SearchScope
from aftercall.settings.providers import OpenAISettings

DEFAULT_URL = "https://api.openai.com/v1"
TIMEOUT_S = 20.0
QUERY_TIMEOUT_S = 2.0  # for the one text of a query: somebody is waiting
# characters; what a passage holds beyond changes its meaning little, and servers refuse longer
# ones
MAX_TEXT_CHARS = 8_000
_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class _Vector(BaseModel):
    index: int
    embedding: list[float]

    @field_validator("embedding")
    @classmethod
    def _has_length(cls, vector: list[float]) -> list[float]:
        if not vector:
            raise ValueError("is empty")
        return vector


class _Answer(BaseModel):
    data: list[_Vector]


class OpenAIEmbedder:
    def __init__(
        self,
        provider: str,
        model: str,
        settings: OpenAISettings,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        """With a `transport` no socket is opened. Raises ConfigError for what is not set up."""
        if provider == "openai-compatible" and not settings.base_url:
            raise ConfigError(
                f"memory.embedder: openai-compatible:{model} needs an address; set OPENAI_BASE_URL"
            )
        if provider == "openai" and not settings.api_key:
            raise ConfigError(f"memory.embedder: openai:{model} needs a key; set OPENAI_API_KEY")
        key = settings.api_key.get_secret_value() if settings.api_key else "none"
        self.name = f"{provider}:{model}"
        self._model = model
        url = (settings.base_url or DEFAULT_URL).rstrip("/")
        self._http = httpx2.Client(
            base_url=f"{url}/", headers={"Authorization": f"Bearer {key}"}, transport=transport
        )

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Raises a ModelError. Nothing of the texts goes into it."""
        body = {
            "model": self._model,
            "input": [text[:MAX_TEXT_CHARS] for text in texts],
            "encoding_format": "float",
        }
        try:
            answer = self._http.post(
                "embeddings", json=body, timeout=QUERY_TIMEOUT_S if len(texts) == 1 else TIMEOUT_S
            )
        except httpx2.HTTPError as error:
            raise ModelUnavailable(
                f"{self.name}: no vectors came ({describe_network_error(error)}); check "
                "network and address"
            ) from None
        if not answer.is_success:
            raise self._refusal(answer)
        try:
            vectors = sorted(
                _Answer.model_validate_json(answer.content).data, key=lambda vector: vector.index
            )
        except ValidationError:
            raise ModelOffForm(
                f"{self.name}: its answer holds no vectors; is this a model for embeddings?"
            ) from None
        if len(vectors) != len(texts) or len({len(vector.embedding) for vector in vectors}) > 1:
            raise ModelOffForm(
                f"{self.name}: gave other vectors than were asked for; is this a model for "
                "embeddings?"
            )
        return [vector.embedding for vector in vectors]

    def close(self) -> None:
        self._http.close()

    def _refusal(self, answer: httpx2.Response) -> ModelUnavailable | ModelRefused:
        status = answer.status_code
        if status in _RETRYABLE_STATUSES and "insufficient_quota" not in answer.text:
            told = answer.headers.get("retry-after", "")
            return ModelUnavailable(
                f"{self.name}: is busy or in trouble (HTTP {status})",
                float(told) if told.isdigit() else None,
            )
        reasons = {
            401: "does not take the key; check OPENAI_API_KEY",
            404: "there is no such model at this address; check memory.embedder",
        }
        return ModelRefused(
            f"{self.name}: "
            f"{reasons.get(status, f'gives no vectors (HTTP {status}); check the account')}"
        )


BATCH_SIZE = 64

log = get_logger("embedding")


class Embedder(Protocol):
    name: str
    """Vectors of different names are never compared."""

    def embed(self, texts: list[str]) -> Sequence[Sequence[float]]:
        """May raise an AftercallError: then search goes by words, and new passages get their
        vectors later.
        """
        ...


def load_embedder(path: str, settings: OpenAISettings) -> Embedder | None:
    """`openai:MODEL`, `openai-compatible:MODEL`, or what `module:factory` makes; None for an
    empty path.
    """
    if not path:
        return None
    module, _, factory = path.partition(":")
    if module in ("openai", "openai-compatible") and factory:
        return OpenAIEmbedder(module, factory, settings)
    try:
        made: Embedder = getattr(importlib.import_module(module), factory)()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(
            f"memory.embedder: {path!r} cannot be used ({error}); name it as openai:MODEL or "
            "module:factory"
        ) from None
    return made


def embed_missing(database: Database, embedder: Embedder) -> int:
    """Give every passage its vector that has none yet; returns how many.

    May be cut off anywhere and done again.
    """
    count = 0
    while True:
        with database.read() as connection:
            found = find_unembedded(connection, embedder.name, BATCH_SIZE)
        if not found:
            return count
        vectors = embedder.embed([text for _, text in found])
        with database.write() as connection:
            store_vectors(
                connection,
                embedder.name,
                [(n, pack_vector(vector)) for (n, _), vector in zip(found, vectors, strict=True)],
            )
        count += len(found)


def embed_query(embedder: Embedder, text: str) -> bytes | None:
    """The vector of a query; None where there is none.

    An embedder that is away does not stop a search: the words are there.
    """
    if not text.strip():
        return None
    try:
        return pack_vector(embedder.embed([text])[0])
    except AftercallError as error:
        log.warning("search goes by words alone", embedder=embedder.name, error=error.code)
        return None


def find_nearest(
    snapshot: PassageSnapshot, model: str, query_vector: bytes, scope: SearchScope, count: int
) -> dict[int, float]:
    """The passages nearest in meaning, each with its cosine; those that point away are left out."""
    rows = [
        (n, bytes(vector))
        for n, vector in fetch_vectors(snapshot, model, scope)
        if len(vector) == len(query_vector)
    ]
    if not rows:
        return {}
    near = zip(
        _cosines(query_vector, [vector for _, vector in rows]), (n for n, _ in rows), strict=True
    )
    return {n: cosine for cosine, n in sorted(near, reverse=True)[:count] if cosine > 0}


def pack_vector(vector: Sequence[float]) -> bytes:
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
