"""Optional search by meaning beside the words. Off unless an embedder is configured.

Vectors are plain columns and are compared within one caller's rows; the database needs no
extension.
"""

import importlib
from array import array
from collections.abc import Sequence
from math import sqrt
from operator import mul
from typing import Any, Protocol

import httpx2
from pydantic import BaseModel, ValidationError, field_validator
from sqlalchemy import Connection, select

from aftercall.db.connect import Database
from aftercall.db.statements import upsert
from aftercall.db.tables import passage_vectors, passages
from aftercall.errors import (
    AftercallError,
    ConfigError,
    ModelOffForm,
    ModelRefused,
    ModelUnavailable,
)
from aftercall.log import get_logger
from aftercall.memory.postings import PassageReader
from aftercall.model.passages import SearchScope
from aftercall.rest import RETRYABLE_STATUSES, describe_network_error, read_retry_pause
from aftercall.settings.providers import OpenAISettings

DEFAULT_URL = "https://api.openai.com/v1"
TIMEOUT_S = 20.0
QUERY_TIMEOUT_S = 2.0  # for the one text of a query: a caller is waiting
MAX_TEXT_CHARS = (
    8_000  # servers refuse longer texts, and the rest changes the meaning little
)
BATCH_SIZE = 64

log = get_logger("embedding")


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
    """Vectors from an OpenAI-style server."""

    def __init__(
        self,
        provider: str,
        model: str,
        settings: OpenAISettings,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        """Raises ConfigError if the address or the key is missing."""
        if provider == "openai-compatible" and not settings.base_url:
            raise ConfigError(
                f"memory.embedder: openai-compatible:{model} needs an address; set OPENAI_BASE_URL"
            )
        if provider == "openai" and not settings.api_key:
            raise ConfigError(
                f"memory.embedder: openai:{model} needs a key; set OPENAI_API_KEY"
            )
        key = settings.api_key.get_secret_value() if settings.api_key else "none"
        self.name = f"{provider}:{model}"
        self._model = model
        url = (settings.base_url or DEFAULT_URL).rstrip("/")
        self._http = httpx2.Client(
            base_url=f"{url}/",
            headers={"Authorization": f"Bearer {key}"},
            transport=transport,
        )

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Raises a ModelError, which never holds any of the texts."""
        body = {
            "model": self._model,
            "input": [text[:MAX_TEXT_CHARS] for text in texts],
            "encoding_format": "float",
        }
        timeout = QUERY_TIMEOUT_S if len(texts) == 1 else TIMEOUT_S
        try:
            answer = self._http.post("embeddings", json=body, timeout=timeout)
        except httpx2.HTTPError as error:
            reason = describe_network_error(error)
            raise ModelUnavailable(
                f"{self.name}: no vectors came ({reason}); check network and address"
            ) from None
        if not answer.is_success:
            raise self._refusal(answer)
        try:
            vectors = _Answer.model_validate_json(answer.content).data
        except ValidationError:
            raise ModelOffForm(
                f"{self.name}: its answer holds no vectors; is this a model for embeddings?"
            ) from None
        lengths = {len(vector.embedding) for vector in vectors}
        if len(vectors) != len(texts) or len(lengths) > 1:
            raise ModelOffForm(
                f"{self.name}: its vectors do not match the texts; is this a model for embeddings?"
            )
        return [
            vector.embedding
            for vector in sorted(vectors, key=lambda vector: vector.index)
        ]

    def close(self) -> None:
        self._http.close()

    def _refusal(self, answer: httpx2.Response) -> ModelUnavailable | ModelRefused:
        status = answer.status_code
        if status in RETRYABLE_STATUSES and "insufficient_quota" not in answer.text:
            return ModelUnavailable(
                f"{self.name}: is busy or failing (HTTP {status})",
                read_retry_pause(answer),
            )
        reasons = {
            401: "refuses the key; check OPENAI_API_KEY",
            404: "there is no such model at this address; check memory.embedder",
        }
        reason = reasons.get(
            status, f"gives no vectors (HTTP {status}); check the account"
        )
        return ModelRefused(f"{self.name}: {reason}")


class Embedder(Protocol):
    name: str
    """Vectors of different names are never compared."""

    def embed(self, texts: list[str]) -> Sequence[Sequence[float]]:
        """May raise an AftercallError: search then uses words alone, and new passages get their
        vectors later.
        """
        ...


def load_embedder(path: str, settings: OpenAISettings) -> Embedder | None:
    """From `openai:MODEL`, `openai-compatible:MODEL` or `module:factory`; None if empty."""
    if not path:
        return None
    module, _, factory = path.partition(":")
    if module in ("openai", "openai-compatible") and factory:
        return OpenAIEmbedder(module, factory, settings)
    made: Embedder = load_factory("memory.embedder", path)
    return made


def load_factory(setting: str, path: str) -> Any:
    """What the factory named by `module:factory` makes. Raises ConfigError."""
    module, _, factory = path.partition(":")
    try:
        return getattr(importlib.import_module(module), factory)()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(
            f"{setting}: {path!r} cannot be used ({error}); name it as PROVIDER:MODEL or "
            "module:factory"
        ) from None


def embed_missing(database: Database, embedder: Embedder) -> int:
    """Store the missing vectors; returns how many. A run that is cut off can be repeated."""
    count = 0
    while True:
        with database.read() as connection:
            found = _find_unembedded(connection, embedder.name)
        if not found:
            return count
        vectors = embedder.embed([text for _, text in found])
        packed = {
            n: pack_vector(vector)
            for (n, _), vector in zip(found, vectors, strict=True)
        }
        with database.write() as connection:
            _store_vectors(connection, embedder.name, packed)
        count += len(found)


def _find_unembedded(connection: Connection, model: str) -> list[tuple[int, str]]:
    embedded = select(passage_vectors.c.n).where(passage_vectors.c.model == model)
    query = (
        select(passages.c.n, passages.c.text)
        .where(passages.c.n.not_in(embedded), passages.c.text != "")
        .order_by(passages.c.n)
        .limit(BATCH_SIZE)
    )
    return [(row.n, row.text) for row in connection.execute(query)]


def _store_vectors(
    connection: Connection, model: str, vectors: dict[int, bytes]
) -> None:
    """Replaces vectors of another model. A passage that was deleted meanwhile gets none."""
    existing = select(passages.c.n).where(passages.c.n.in_(list(vectors)))
    for n in connection.execute(existing).scalars().all():
        upsert(
            connection,
            passage_vectors,
            {"n": n},
            {"model": model, "vector": vectors[n]},
        )


def embed_query(embedder: Embedder, text: str) -> bytes | None:
    """The vector of a query; None for an empty text, or when the embedder fails."""
    if not text.strip():
        return None
    try:
        return pack_vector(embedder.embed([text])[0])
    except AftercallError as error:
        log.warning("search uses words alone", embedder=embedder.name, error=error.code)
        return None


def find_nearest(
    reader: PassageReader,
    model: str,
    query_vector: bytes,
    scope: SearchScope,
    count: int,
) -> dict[int, float]:
    """The passages nearest in meaning with their cosines, which are all positive."""
    rows = [
        (n, bytes(vector))
        for n, vector in reader.fetch_vectors(model, scope)
        if len(vector) == len(query_vector)
    ]
    if not rows:
        return {}
    cosines = _cosines(query_vector, [vector for _, vector in rows])
    near = sorted(zip(cosines, (n for n, _ in rows), strict=True), reverse=True)
    return {n: cosine for cosine, n in near[:count] if cosine > 0}


def pack_vector(vector: Sequence[float]) -> bytes:
    """32-bit floats of length one: the cosine of two vectors is then their product."""
    length = sqrt(sum(value * value for value in vector)) or 1.0
    return array("f", [value / length for value in vector]).tobytes()


def _cosines(wanted: bytes, vectors: Sequence[bytes]) -> list[float]:
    if numpy := _find_numpy():
        table = numpy.frombuffer(b"".join(vectors), dtype="float32").reshape(
            len(vectors), -1
        )
        return [
            float(value) for value in table @ numpy.frombuffer(wanted, dtype="float32")
        ]
    known = array("f", wanted)
    return [sum(map(mul, known, array("f", vector))) for vector in vectors]


def _find_numpy() -> Any:
    """Optional: many times faster where it is installed."""
    try:
        return importlib.import_module("numpy")
    except ImportError:
        return None
