"""An S3 service on this machine: moto's server, which refuses conditional writes as Amazon does."""

import itertools
import re

import httpx2
import pytest
from moto.server import ThreadedMotoServer
from pydantic import SecretStr

from aftercall.settings.providers import ArchiveSettings

OPERATOR = (
    "AWS4-HMAC-SHA256 Credential=key/20260213/us-east-1/s3/aws4_request, "
    "SignedHeaders=host, Signature=0"
)


_numbers = itertools.count(1)
"""All servers of a process share their objects."""


class S3Server:
    """Its objects outlive a stop."""

    def __init__(self) -> None:
        self._server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        self._server.start()
        host, self._port = self._server.get_host_and_port()
        self.address = f"http://{host}:{self._port}"

    def stop(self) -> None:
        self._server.stop()

    def start(self) -> None:
        self._server = ThreadedMotoServer("127.0.0.1", self._port, verbose=False)
        self._server.start()

    def make_bucket(self, *, is_locked: bool = False) -> ArchiveSettings:
        """The settings of a new, empty bucket. One with object lock has versions, too."""
        name = f"bucket-{next(_numbers)}"
        lock = {"x-amz-bucket-object-lock-enabled": "true"} if is_locked else {}
        self.send("PUT", name, headers=lock)
        return ArchiveSettings(
            url=f"s3://{name}/calls",
            endpoint=self.address,
            access_key_id="key",
            secret_access_key=SecretStr("secret"),
        )

    def name_bucket(self, monkeypatch: pytest.MonkeyPatch) -> ArchiveSettings:
        """Names a new bucket in the environment, as an operator does."""
        made = self.make_bucket()
        monkeypatch.setenv("AFTERCALL_ARCHIVE_URL", made.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL", self.address)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        return made

    def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
    ) -> bytes:
        """As an operator of the service would, past everything of ours."""
        url = f"{self.address}/{path}"
        signed = {"Authorization": OPERATOR} | (headers or {})
        answer = httpx2.request(method, url, content=body, headers=signed)
        answer.raise_for_status()
        return answer.content

    def list_keys(self, settings: ArchiveSettings) -> list[str]:
        bucket, _, prefix = settings.url.removeprefix("s3://").partition("/")
        found = re.findall(r"<Key>(.*?)</Key>", self.send("GET", bucket).decode())
        return [key.removeprefix(f"{prefix}/") for key in found]

    def path_of(self, settings: ArchiveSettings, key: str) -> str:
        return f"{settings.url.removeprefix('s3://')}/{key}"
