"""Vectors from a server that speaks OpenAI's embeddings route: the lab's, over a real socket."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from aftercall.app import App
from aftercall.errors import (
    AftercallError,
    ConfigError,
    ModelOffForm,
    ModelRefused,
    ModelUnavailable,
)
from aftercall.lab.models import make_openai
from aftercall.lab.rest import Fault, ModelScript, serve_on_loopback
from aftercall.memory.embedding import Embedder, OpenAIEmbedder, load_embedder
from aftercall.model.passages import SearchScope
from aftercall.settings.providers import OpenAISettings
from aftercall.settings.sections import MemorySettings
from fakes import make_call

KEY, MODEL = "sk-lab", "text-embedding-3-small"


@dataclass(frozen=True)
class Lab:
    script: ModelScript
    url: str

    def settings(self, key: str = KEY) -> OpenAISettings:
        return OpenAISettings(api_key=SecretStr(key), base_url=f"{self.url}/v1")

    def embedder(self, model: str = MODEL, key: str = KEY) -> OpenAIEmbedder:
        return OpenAIEmbedder("openai", model, self.settings(key))


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    script = ModelScript(lambda _: "")
    with serve_on_loopback(make_openai(script, KEY, (MODEL,))) as url:
        yield Lab(script, url)


def embed(embedder: OpenAIEmbedder, *texts: str) -> list[list[float]]:
    try:
        return embedder.embed(list(texts))
    finally:
        embedder.close()


def test_vectors_come_in_the_order_of_the_texts(lab: Lab) -> None:
    together = embed(lab.embedder(), "tea and cake", "a rowing boat")
    assert together == [
        *embed(lab.embedder(), "tea and cake"),
        *embed(lab.embedder(), "a rowing boat"),
    ]
    assert together[0] != together[1]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("rate_limit", ModelUnavailable),
        ("quota", ModelRefused),
        ("overloaded", ModelUnavailable),
        ("reset", ModelUnavailable),
    ],
)
def test_each_fault_is_the_error_it_should_be(
    lab: Lab, fault: Fault, error: type[AftercallError]
) -> None:
    lab.script.faults.append(fault)
    with pytest.raises(error) as raised:
        embed(lab.embedder(), "my secret words")
    assert "secret" not in str(raised.value)


def test_a_wrong_key_or_model_is_said_and_not_tried_again(lab: Lab) -> None:
    for embedder, said in (
        (lab.embedder(key="sk-wrong"), "key"),
        (lab.embedder(model="gpt-9"), "memory.embedder"),
    ):
        with pytest.raises(ModelRefused, match=said):
            embed(embedder, "hello")


def answer(body: Any, _request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, json=body)


def test_an_answer_without_vectors_is_refused() -> None:
    bodies: list[Any] = [
        {"data": []},
        {"data": [{"index": 0, "embedding": []}]},
        {"choices": []},
        "prose",
    ]
    for body in bodies:
        transport = httpx2.MockTransport(partial(answer, body))
        with pytest.raises(ModelOffForm, match="embeddings"):
            embed(
                OpenAIEmbedder(
                    "openai", MODEL, OpenAISettings(api_key=SecretStr(KEY)), transport
                ),
                "hello",
            )


def test_what_is_not_set_up_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        load_embedder(f"openai:{MODEL}", OpenAISettings())
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL"):
        load_embedder(
            f"openai-compatible:{MODEL}", OpenAISettings(api_key=SecretStr(KEY))
        )


def test_a_call_is_indexed_with_vectors_and_searched_with_them(
    app: App, lab: Lab
) -> None:
    memory = MemorySettings(embedder=f"openai:{MODEL}")
    near = replace(
        app,
        settings=app.settings.model_copy(
            update={"memory": memory, "openai": lab.settings()}
        ),
    )
    row, _ = near.journal.ingest(
        make_call(
            [
                ("agent", "Hello!"),
                ("caller", "The of and to"),
                ("agent", "Yes?"),
                ("caller", "I row boats."),
            ]
        )
    )
    near.step_runner.run(row.live.id, "index")
    lab.script.questions.clear()
    hits = near.search.find("the of and to", SearchScope("main", "+15550100"))
    assert hits[0].passage.text == "The of and to"
    assert [asked.data for asked in lab.script.questions] == ["the of and to"]
    embedder: Embedder | None = near.embedder
    assert isinstance(embedder, OpenAIEmbedder)
    embedder.close()
