"""Vectors from OpenAI, or from any server that speaks its embeddings route."""

import httpx2
from pydantic import BaseModel, ValidationError, field_validator

from aftercall.errors import ConfigError, ModelOffForm, ModelRefused, ModelUnavailable, tell_network_trouble
from aftercall.settings import OpenAISettings

USUAL_URL = "https://api.openai.com/v1"
TIMEOUT_S = 20.0
QUICK_S = 2.0  # for the one text of a query: somebody is waiting
LONGEST = 8_000  # characters; what a passage holds beyond changes its meaning little, and servers refuse longer ones
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


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
    def __init__(self, provider: str, model: str, settings: OpenAISettings, transport: httpx2.BaseTransport | None = None) -> None:
        """With a `transport` no socket is opened. Raises ConfigError for what is not set up."""
        if provider == "openai-compatible" and not settings.base_url:
            raise ConfigError(f"memory.embedder: openai-compatible:{model} needs an address; set OPENAI_BASE_URL")
        if provider == "openai" and not settings.api_key:
            raise ConfigError(f"memory.embedder: openai:{model} needs a key; set OPENAI_API_KEY")
        key = settings.api_key.get_secret_value() if settings.api_key else "none"
        self.name = f"{provider}:{model}"
        self._model = model
        url = (settings.base_url or USUAL_URL).rstrip("/")
        self._http = httpx2.Client(base_url=f"{url}/", headers={"Authorization": f"Bearer {key}"}, transport=transport)

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Raises a ModelError. Nothing of the texts goes into it."""
        body = {"model": self._model, "input": [text[:LONGEST] for text in texts], "encoding_format": "float"}
        try:
            answer = self._http.post("embeddings", json=body, timeout=QUICK_S if len(texts) == 1 else TIMEOUT_S)
        except httpx2.HTTPError as error:
            raise ModelUnavailable(f"{self.name}: no vectors came ({tell_network_trouble(error)}); check network and address") from None
        if not answer.is_success:
            raise self._refusal(answer)
        try:
            vectors = sorted(_Answer.model_validate_json(answer.content).data, key=lambda vector: vector.index)
        except ValidationError:
            raise ModelOffForm(f"{self.name}: its answer holds no vectors; is this a model for embeddings?") from None
        if len(vectors) != len(texts) or len({len(vector.embedding) for vector in vectors}) > 1:
            raise ModelOffForm(f"{self.name}: gave other vectors than were asked for; is this a model for embeddings?")
        return [vector.embedding for vector in vectors]

    def close(self) -> None:
        self._http.close()

    def _refusal(self, answer: httpx2.Response) -> ModelUnavailable | ModelRefused:
        status = answer.status_code
        if status in _PASSING and "insufficient_quota" not in answer.text:
            told = answer.headers.get("retry-after", "")
            return ModelUnavailable(f"{self.name}: is busy or in trouble (HTTP {status})", float(told) if told.isdigit() else None)
        reasons = {401: "does not take the key; check OPENAI_API_KEY", 404: "there is no such model at this address; check memory.embedder"}
        return ModelRefused(f"{self.name}: {reasons.get(status, f'gives no vectors (HTTP {status}); check the account')}")
