"""Clients of a server in this process that send the API token, as every client must."""

import re
from typing import Any

from fastapi.testclient import TestClient

from aftercall.app import App
from aftercall.encryption import load_api_token
from aftercall.settings import Settings
from aftercall.web.server import make_server

JSON = {"Content-Type": "application/json"}
ADDRESS = "http://127.0.0.1:8080"


def bearer(settings: Settings) -> dict[str, str]:
    """The header with the token of this home."""
    token = load_api_token(settings).get_secret_value()
    return {"Authorization": f"Bearer {token}"}


def make_client(app: App, **options: Any) -> TestClient:
    return TestClient(
        make_server(app),
        base_url=ADDRESS,
        client=("127.0.0.1", 1),
        headers=bearer(app.settings),
        **options,
    )


def make_stranger(
    app: App, address: str = "192.0.2.7", base_url: str = ADDRESS
) -> TestClient:
    """A client elsewhere, without a token."""
    return TestClient(
        make_server(app),
        base_url=base_url,
        client=(address, 1),
        follow_redirects=False,
    )


def csrf_of(page: str) -> str:
    found = re.search(r'name="csrf-token" content="([0-9a-f]+)"', page)
    assert found
    return found[1]


def log_in(client: TestClient, secret: str, **headers: str) -> int:
    """Logs in by the form, as a browser does; the status of the answer."""
    token = csrf_of(client.get("/login").text)
    form = {"csrf": token, "secret": secret, "to": "/calls"}
    return client.post("/login", data=form, headers=headers).status_code
