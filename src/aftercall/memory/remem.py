"""The client of remote document memory. Both dialects; field names nowhere else.

It indexes late, so our own copy is always read first; it may be asked twice, so each document
carries an idempotency key.
"""

from hashlib import sha256

import httpx2

from aftercall.errors import RememError, RememRefused, RememUnavailable, describe_network_error
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
        """With a `transport` no socket is opened."""
        key = settings.api_key.get_secret_value() if settings.api_key else ""
        self._settings = settings
        self._http = httpx2.Client(
            base_url=settings.api_url or DEFAULT_URL,
            headers={"X-API-Key": key, "Authorization": f"Bearer {key}"},
            timeout=TIMEOUT_S,
            transport=transport,
        )

    def send(self, document: Document, remote_id: str = "") -> str:
        """Hand the document over; the id it has there, empty where it is not told.

        Sent again, it is the same document.

        With the `remote_id` of a document sent before, that one is replaced; one that is gone
        there is created again.
        """
        if is_document_id(remote_id):
            answer = self._ask(
                "PUT",
                f"/v1/documents/{remote_id}",
                {"content": document.content, "mode": "replace"},
            )
            if answer.is_success:
                return remote_id
            if answer.status_code != NOT_FOUND:
                raise _refusal(answer)
        path, body = _make_request(document, self._settings)
        answer = self._ask(
            "POST", path, body, {"Idempotency-Key": make_document_id("remem", document.id)}
        )
        if not answer.is_success:
            raise _refusal(answer)
        return _id_in(answer)

    def _ask(
        self, method: str, path: str, body: dict[str, object], headers: dict[str, str] | None = None
    ) -> httpx2.Response:
        try:
            return self._http.request(method, path, json=body, headers=headers)
        except httpx2.HTTPError as error:
            raise RememUnavailable(
                f"remem: no answer ({describe_network_error(error)}); sent again later"
            ) from None

    def close(self) -> None:
        self._http.close()


def _make_request(document: Document, settings: RememSettings) -> tuple[str, dict[str, object]]:
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
    """Whose pages these are, without their number; whoever knows the number can work it out and
    ask for them.
    """
    return sha256((caller or "").encode()).hexdigest()[:16]


def _refusal(answer: httpx2.Response) -> RememError:
    """By the status alone: the form of its error bodies is not known."""
    status = answer.status_code
    if status in _RETRYABLE_STATUSES:
        return RememUnavailable(
            f"remem: is busy or in trouble (HTTP {status}); sent again later", _retry_after(answer)
        )
    reasons = {
        401: "does not take the key; check REMEM_API_KEY",
        403: "the key may not write there; check remem.namespace",
    }
    return RememRefused(
        f"remem: {reasons.get(status, f'does not take the document (HTTP {status})')}"
    )


def _retry_after(answer: httpx2.Response) -> float | None:
    told = answer.headers.get("retry-after", "")
    return float(told) if told.isdigit() else None


def _id_in(answer: httpx2.Response) -> str:
    try:
        told = answer.json()
    except ValueError:
        return ""
    found = (told.get("document_id") or told.get("id")) if isinstance(told, dict) else None
    return found if isinstance(found, str) else ""
