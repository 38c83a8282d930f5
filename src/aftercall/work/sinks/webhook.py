"""`webhook`: a signed POST as Standard Webhooks describe it. Its id is the delivery's key."""

import binascii
import hmac
import json
from base64 import b64decode, b64encode

import httpx2

from aftercall.clock import Clock, format_instant
from aftercall.errors import ConfigError
from aftercall.model.followups import SinkReceipt, SinkWork
from aftercall.settings.providers import WebhookSettings
from aftercall.work.sinks.http import HttpRequest, send

PREFIX = "whsec_"
MIN_KEY_BYTES = 24  # as Standard Webhooks ask
MAX_ANSWER_CHARS = 500


class WebhookSink:
    name = "webhook"
    leaves_machine = True
    can_repeat = True

    def __init__(
        self,
        settings: WebhookSettings,
        clock: Clock,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._url = settings.url.get_secret_value() if settings.url else ""
        self._key = (
            _read_secret(settings.secret.get_secret_value())
            if settings.secret
            else None
        )
        self._clock = clock
        self._transport = transport

    def describe_dry_run(self, work: SinkWork) -> str:
        return f"would post a followup.{work.purpose} event"

    def deliver(self, work: SinkWork) -> SinkReceipt:
        now = self._clock.now()
        event = {
            "type": f"followup.{work.purpose}",
            "timestamp": format_instant(now),
            "data": work.to_json(),
        }
        body = json.dumps(event).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "aftercall"}
        headers |= self._sign(work.key, int(now.timestamp()), body)
        request = HttpRequest("POST", self._url, headers, content=body)
        answer = send(self.name, request, self._transport)
        return SinkReceipt(
            response=f"{answer.status_code} {answer.text[:MAX_ANSWER_CHARS]}".strip()
        )

    def _sign(self, key: str, timestamp: int, body: bytes) -> dict[str, str]:
        identity = f"msg_{key.replace(':', '_')}"
        signed = {"webhook-id": identity, "webhook-timestamp": str(timestamp)}
        if self._key is None:
            return signed
        digest = hmac.digest(
            self._key, f"{identity}.{timestamp}.".encode() + body, "sha256"
        )
        return signed | {"webhook-signature": f"v1,{b64encode(digest).decode()}"}


def _read_secret(secret: str) -> bytes:
    try:
        key = b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ConfigError(
            "webhook.secret: is not base64; Standard Webhooks write it as whsec_ and base64"
        ) from None
    if len(key) < MIN_KEY_BYTES:
        raise ConfigError(
            f"webhook.secret: holds {len(key)} bytes and needs {MIN_KEY_BYTES}; "
            "`openssl rand -base64 32` prints a good one"
        )
    return key
