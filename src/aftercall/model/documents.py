"""A document: a page of text that memory keeps, made of a call or handed in by a client."""

from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from pydantic import BaseModel, ConfigDict, Field

MAX_CONTENT_CHARS = 1_000_000
MAX_TITLE_CHARS = 500
_ID_NAMESPACE = uuid5(NAMESPACE_URL, "aftercall:documents")


class Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    title: str = Field(max_length=MAX_TITLE_CHARS)
    content: str = Field(max_length=MAX_CONTENT_CHARS)
    source: str = "api"
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)
    namespace: str = ""
    agent_id: str = "main"
    caller: str | None = None
    call_id: str | None = None
    made_at: datetime
    changed_at: datetime


def make_document_id(*names: str) -> str:
    """The same names give the same id: a document that is made or sent twice is one."""
    return str(uuid5(_ID_NAMESPACE, "\n".join(names)))


def is_document_id(text: str) -> bool:
    """Canonical UUIDs only: an id becomes part of a path."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
