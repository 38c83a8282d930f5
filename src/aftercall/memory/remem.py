"""The client of remote document memory (Remem), in both dialects of its API.

The service indexes late, so the local copy is always read first. A request may be sent twice, so
each document has an idempotency key.
"""

from hashlib import sha256

import httpx2

from aftercall.errors import (
    RememError,
    RememRefused,
    RememUnavailable,
    describe_network_error,
)
from aftercall.model.passages import Document, is_document_id, make_document_id
from aftercall.settings.providers import RememSettings

CALLER_PLACEHOLDER = "{caller}"
DEFAULT_URL = "https://api.remem.io"
TIMEOUT_S = 15.0
NOT_FOUND = 404
_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


class RememClient:
    def __init__(
        self, settings: RememSettings, transport: httpx2.BaseTransport | None = None
    ) -> None:
        key = settings.api_key.get_secret_value() if settings.api_key else ""
        self._settings = settings
        self._http = httpx2.Client(
            base_url=settings.api_url or DEFAULT_URL,
            headers={"X-API-Key": key, "Authorization": f"Bearer {key}"},
            timeout=TIMEOUT_S,
            transport=transport,
        )

    def send(self, document: Document, remote_id: str = "") -> str:
        """Send a document; returns its remote id, or an empty string if the answer has none.

        With the `remote_id` of an earlier copy, that copy is replaced, or created again if it is
        gone.
        """
        if is_document_id(remote_id):
            change: dict[str, object] = {"content": document.content, "mode": "replace"}
            answer = self._request("PUT", f"/v1/documents/{remote_id}", change)
            if answer.is_success:
                return remote_id
            if answer.status_code != NOT_FOUND:
                raise _to_error(answer)
        path, body = _make_request(document, self._settings)
        key = {"Idempotency-Key": make_document_id("remem", document.id)}
        answer = self._request("POST", path, body, key)
        if not answer.is_success:
            raise _to_error(answer)
        return _parse_id(answer)

    def _request(
        self,
        method: str,
        path: str,
        body: dict[str, object],
        headers: dict[str, str] | None = None,
    ) -> httpx2.Response:
        try:
            return self._http.request(method, path, json=body, headers=headers)
        except httpx2.HTTPError as error:
            raise RememUnavailable(
                f"remem: no answer ({describe_network_error(error)}); retried later"
            ) from None

    def close(self) -> None:
        self._http.close()


def _make_request(
    document: Document, settings: RememSettings
) -> tuple[str, dict[str, object]]:
    page: dict[str, object] = {
        "title": document.title,
        "content": document.content,
        "source": document.source,
    }
    if settings.namespace:
        page["namespace"] = settings.namespace.replace(
            CALLER_PLACEHOLDER, make_caller_token(document.caller)
        )
    if settings.dialect == "documents":
        return "/v1/documents", page | {"tags": ", ".join(document.tags)}
    body = page | {
        "metadata": document.metadata | {"tags": list(document.tags)},
        "source_id": document.call_id or document.id,
        "mime_type": "text/markdown",
        "return_id": True,
    }
    return "/v1/documents/ingest", body


def make_caller_token(caller: str | None) -> str:
    """A token for the namespace instead of the number; it can be computed from the number."""
    return sha256((caller or "").encode()).hexdigest()[:16]


def _to_error(answer: httpx2.Response) -> RememError:
    """By the status alone: the form of the error bodies is not documented."""
    status = answer.status_code
    if status in _RETRYABLE_STATUSES:
        pause = answer.headers.get("retry-after", "")
        return RememUnavailable(
            f"remem: is busy or failing (HTTP {status}); retried later",
            float(pause) if pause.isdigit() else None,
        )
    reasons = {
        401: "refuses the key; check REMEM_API_KEY",
        403: "the key may not write there; check remem.namespace",
    }
    reason = reasons.get(status, f"refuses the document (HTTP {status})")
    return RememRefused(f"remem: {reason}")


def _parse_id(answer: httpx2.Response) -> str:
    try:
        body = answer.json()
    except ValueError:
        return ""
    found = (
        (body.get("document_id") or body.get("id")) if isinstance(body, dict) else None
    )
    return found if isinstance(found, str) else ""
