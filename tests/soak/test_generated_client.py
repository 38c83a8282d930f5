"""A client that a generator made of our OpenAPI document works against a real server."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aftercall.app import App, build
from aftercall.settings import Settings
from aftercall.web.server import make_server
from fakes import make_call
from server_process import serving

pytest.importorskip("openapi_python_client")
TOKEN = "generated-0123456789abcdefghijklm"
# the generator knows no audio and no archives: it leaves these answers out
NOT_JSON = ("audio/wav", "application/zip")


def generate(app: App, folder: Path) -> str:
    """Writes the package `made_client` into the folder; what the generator said."""
    document = folder / "openapi.json"
    document.write_text(json.dumps(make_server(app).openapi()))
    options = ["--path", document, "--output-path", folder / "made_client"]
    command = [sys.executable, "-m", "openapi_python_client", "generate"]
    done = subprocess.run(
        [*command, *map(str, options), "--meta", "none"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_generated_client_lists_hands_in_and_reads_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    app = build(Settings(home=home))
    said = generate(app, tmp_path)
    app.close()
    warnings = said.split("WARNING parsing")[1:]
    assert all(any(kind in part for kind in NOT_JSON) for part in warnings)
    monkeypatch.syspath_prepend(str(tmp_path))
    call = make_call([("agent", "Hello!"), ("caller", "I prefer tea.")])
    with serving(home, AFTERCALL_API_TOKEN=TOKEN) as address:
        use(address, call.model_dump(mode="json"))


def use(address: str, call: dict[str, Any]) -> None:
    from made_client import AuthenticatedClient
    from made_client.api.calls import add_call, get_call, list_calls
    from made_client.api.events import list_events
    from made_client.api.follow_ups import list_followups
    from made_client.models import AddCallCall

    client = AuthenticatedClient(base_url=address, token=TOKEN)
    made = add_call.sync(client=client, body=AddCallCall.from_dict(call))
    assert [one.id for one in list_calls.sync(client=client).calls] == [made.id]
    assert get_call.sync(made.id, client=client).turns[1].text == "I prefer tea."
    assert list_followups.sync(client=client).followups == []
    told: list[str] = []
    after = ""
    while "call.sealed" not in told:
        page = list_events.sync(client=client, after=after)
        told += [str(event.type_) for event in page.events]
        after = page.next_
