"""One server for all tests here. `make test` runs them in .venv-frameworks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from framework_server import TOKEN, Server
from server_process import serving


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("home")
    settings = {"AFTERCALL_API_TOKEN": TOKEN, "AFTERCALL_RECONNECT_WINDOW_S": "0"}
    with serving(home, **settings) as address:
        yield address


@pytest.fixture
def server(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    # a busy machine is not what is tested here
    monkeypatch.setattr("aftercall.client.call.START_TIMEOUT_S", 60)
    server = Server(address, tmp_path / "spool")
    server.wait_ready()
    yield server
    server.close()
