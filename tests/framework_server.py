"""A running server, its client, and what it has stored, for tests of agent frameworks."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

from aftercall.client import Client

TOKEN = "frameworks-0123456789abcdefghijkl"


class Server:
    def __init__(self, address: str, spool: Path) -> None:
        self.client = Client(address, TOKEN, spool=spool)
        self._http = httpx2.Client(
            base_url=address,
            headers={"Authorization": f"Bearer {TOKEN}"},
            timeout=60,
            trust_env=False,
        )

    def read_call(self, call_id: str | None) -> dict[str, Any]:
        return dict(self._http.get(f"/api/calls/{call_id}").json())

    def has_named(self, caller: str, name: str) -> bool:
        """Whether the work after a call has found out who owns the number."""
        return f'"{name}"' in self._http.get(f"/api/people/{quote(caller)}").text

    def wait_ready(self) -> None:
        while self._http.get("/readyz").status_code != 200:
            pass

    def close(self) -> None:
        self._http.close()
