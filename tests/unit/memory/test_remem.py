"""The client of remote document memory against the emulated one, in both dialects."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Literal, Protocol

import pytest
from pydantic import SecretStr

from aftercall.errors import RememRefused, RememUnavailable
from aftercall.lab.rest import serve_on_loopback
from aftercall.lab.services import EmulatedRemem, Fault, make_remem
from aftercall.memory.documents import RememClient
from aftercall.model.passages import Document, make_document_id
from aftercall.settings.providers import RememSettings
from fakes import START, VirtualClock

PAGE = Document(
    id=make_document_id("call", "1"),
    title="Voice Call Summary",
    content="About the bug.",
    source="voice-call",
    tags=("voice-session",),
    metadata={"session_id": "voice-session:1"},
    call_id="1",
    made_at=START,
    changed_at=START,
)


@pytest.fixture
async def lab() -> EmulatedRemem:
    return EmulatedRemem("vlt_lab", clock=VirtualClock())


@pytest.fixture
def url(lab: EmulatedRemem) -> Iterator[str]:
    with serve_on_loopback(make_remem(lab)) as url:
        yield url


Dialect = Literal["ingest", "documents"]


class Connect(Protocol):
    def __call__(
        self,
        url: str,
        dialect: Dialect = "ingest",
        key: str = "vlt_lab",
        namespace: str | None = None,
    ) -> RememClient: ...


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes clients, which are closed when the test ends."""
    with ExitStack() as stack:

        def connect(
            url: str,
            dialect: Dialect = "ingest",
            key: str = "vlt_lab",
            namespace: str | None = None,
        ) -> RememClient:
            client = RememClient(
                RememSettings(
                    api_key=SecretStr(key),
                    api_url=url,
                    dialect=dialect,
                    namespace=namespace,
                )
            )
            stack.callback(client.close)
            return client

        yield connect


@pytest.mark.parametrize(
    ("dialect", "path"),
    [("ingest", "/v1/documents/ingest"), ("documents", "/v1/documents")],
)
def test_a_document_sent_twice_is_one_document(
    url: str, lab: EmulatedRemem, dialect: Dialect, path: str, connect: Connect
) -> None:
    remem = connect(url, dialect)
    assert remem.send(PAGE) == remem.send(PAGE)
    assert lab.posts == [path, path]
    (kept,) = lab.documents.values()
    assert (kept["title"], kept["content"], kept["source"]) == (
        PAGE.title,
        PAGE.content,
        "voice-call",
    )
    tags = kept["tags"] if dialect == "documents" else kept["metadata"]["tags"]
    assert tags == ("voice-session" if dialect == "documents" else ["voice-session"])


ANEW = PAGE.model_copy(update={"content": "About the roof."})


@pytest.mark.parametrize("dialect", ["ingest", "documents"])
def test_a_document_made_anew_takes_the_place_of_the_one_sent_before(
    url: str, lab: EmulatedRemem, dialect: Dialect, connect: Connect
) -> None:
    remem = connect(url, dialect)
    sent = remem.send(PAGE)
    assert remem.send(ANEW, sent) == sent
    assert [page["content"] for page in lab.documents.values()] == ["About the roof."]
    assert len(lab.posts) == 1


def test_a_document_that_is_gone_there_is_created_again(
    url: str, lab: EmulatedRemem, connect: Connect
) -> None:
    remem = connect(url)
    remem.send(ANEW, "00000000-0000-4000-8000-000000000000")
    remem.send(ANEW, "../../admin")
    assert [page["content"] for page in lab.documents.values()] == ["About the roof."]
    assert lab.posts == ["/v1/documents/ingest"] * 2, (
        "what is no id becomes part of no path"
    )


@pytest.mark.parametrize(
    ("fault", "error"), [("unavailable", RememUnavailable), ("forbidden", RememRefused)]
)
def test_an_update_that_is_not_taken_says_whether_it_may_pass(
    url: str,
    lab: EmulatedRemem,
    fault: Fault,
    error: type[RememUnavailable],
    connect: Connect,
) -> None:
    remem = connect(url)
    sent = remem.send(PAGE)
    lab.faults.append(fault)
    with pytest.raises(error):
        remem.send(ANEW, sent)
    assert len(lab.documents) == 1


def test_a_lost_answer_leaves_one_document_when_it_is_sent_again(
    url: str, lab: EmulatedRemem, connect: Connect
) -> None:
    lab.faults.append("lost_answer")
    remem = connect(url)
    with pytest.raises(RememUnavailable):
        remem.send(PAGE)
    remem.send(PAGE)
    assert len(lab.documents) == 1


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("rate_limit", RememUnavailable),
        ("unavailable", RememUnavailable),
        ("forbidden", RememRefused),
        ("wrong_key", RememRefused),
    ],
)
def test_what_may_pass_is_told_from_what_will_not(
    url: str,
    lab: EmulatedRemem,
    fault: Fault,
    error: type[RememUnavailable],
    connect: Connect,
) -> None:
    lab.faults.append(fault)
    remem = connect(url, namespace="voice")
    with pytest.raises(error) as raised:
        remem.send(PAGE)
    assert raised.value.retryable is (error is RememUnavailable)
    assert raised.value.retry_after_s == (1 if fault == "rate_limit" else None)
    assert "bug" not in str(raised.value)


def test_a_wrong_key_is_said_plainly(url: str, connect: Connect) -> None:
    remem = connect(url, key="vlt_wrong")
    with pytest.raises(RememRefused, match="check REMEM_API_KEY"):
        remem.send(PAGE)


def test_nobody_there_may_come_back(connect: Connect) -> None:
    remem = connect("http://127.0.0.1:9")
    with pytest.raises(RememUnavailable, match="no answer"):
        remem.send(PAGE)


def test_the_emulated_one_finds_late_what_was_written(lab: EmulatedRemem) -> None:
    lab.indexing_s = 10
    lab.store({"content": "About the bug."}, None)
    assert lab.find("bug", 3) == []
    assert isinstance(lab.clock, VirtualClock)
    lab.clock.move(11)
    assert len(lab.find("bug", 3)) == 1
