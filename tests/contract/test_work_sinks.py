"""What every sink owes: the same key twice is one thing, a rehearsal does nothing, and words
stay words.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from email import message_from_string
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx2
import pytest
from pydantic import SecretStr

from aftercall.lab.services import EmulatedGitHub
from aftercall.model.followups import SinkWork
from aftercall.settings import Settings
from aftercall.settings.providers import (
    AgentSettings,
    EmailSettings,
    GitHubSettings,
    McpSettings,
    TelnyxSettings,
    TwilioSettings,
    WebhookSettings,
)
from aftercall.work.sinks import Sink
from aftercall.work.sinks.command import AgentSink, McpSink
from aftercall.work.sinks.http import GitHubSink, WebhookSink
from aftercall.work.sinks.markdown import PeopleSink, TasksSink
from aftercall.work.sinks.message import (
    EmailSink,
    MessageSink,
    TelnyxMessages,
    TwilioMessages,
)
from fakes import VirtualClock
from mail_server import Postman
from webhook_receiver import Receiver

OWNER = "+15550109"
KEY = "0123456789abcdef0123456789abcdef"
NASTY = "../../x; $(rm -rf ~) `id` <!-- aftercall: ffff --> --> @all [a](b) \u202e Subject: x"


@dataclass(frozen=True)
class Case:
    sink: Sink
    effects: Callable[[], list[str]]
    """Everything the sink has done, as text."""


def make_work(sink: str, **fields: Any) -> SinkWork:
    told: dict[str, Any] = {
        "title": "Open a bug about the broken thumbnails",
        "details": "On the gallery page.",
        "words": "open a bug",
    }
    rest: dict[str, Any] = {
        "key": f"{KEY}:{sink}",
        "purpose": "request",
        "kind": "issue",
        "caller": "+15550100",
        "call_id": "C1",
    }
    return SinkWork(
        **rest
        | told
        | {"conversation": "K1", "due": "2026-02-17", "trust": "verified"}
        | fields
    )


def files_case(settings: Settings, sink: Sink, folder: str) -> Case:
    def effects() -> list[str]:
        place = settings.home / "workspace" / folder
        return (
            [path.read_text() for path in sorted(place.rglob("*.md"))]
            if place.exists()
            else []
        )

    return Case(sink, effects)


class Carrier(httpx2.MockTransport):
    """Messages of Twilio and Telnyx by REST."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.sent: list[dict[str, str]] = []
        self.is_silent_after_work = False

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        body = request.read().decode()
        if request.method == "GET":
            wanted = request.url.params["To"]
            return httpx2.Response(
                200,
                json={
                    "messages": [
                        message for message in self.sent if message["to"] == wanted
                    ]
                },
            )
        if request.url.path.startswith("/v2/messages"):
            assert request.headers["authorization"] == "Bearer telnyx-key"
            asked = json.loads(body)
            message = {"to": asked["to"], "body": asked["text"]}
        else:
            assert request.headers["authorization"].startswith("Basic ")
            form = parse_qs(body, strict_parsing=True)
            message = {
                "to": form["To"][0],
                "body": form["Body"][0],
                "from": form["From"][0],
            }
        sid = f"SM{len(self.sent)}"
        self.sent.append(message | {"sid": sid, "status": "sent"})
        if self.is_silent_after_work:
            raise httpx2.ReadTimeout("no answer")
        return httpx2.Response(201, json={"sid": sid, "data": {"id": sid}})


TOOL = """
import sys
from pathlib import Path
from mcp.server import MCPServer

server = MCPServer("notes")

@server.tool()
def keep(title: str, details: str = "") -> str:
    with Path(sys.argv[1]).open("a") as file:
        file.write(title + "|" + details.replace(chr(10), " ") + chr(10))
    return "kept"

@server.tool()
def book(seat: str) -> str:
    return "booked"

server.run()
"""
DOES_IT = """
import json, os, sys
asked = json.load(sys.stdin)
assert asked == json.load(open(os.environ["AFTERCALL_REQUEST_FILE"]))
print("working on it")
with open(sys.argv[1], "a") as file:
    file.write(asked["requests"][0]["title"] + "\\n")
print(json.dumps({"state": "done", "link": "https://x.example/1", "note": "as you wished"}))
"""


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def open_case(tmp_path: Path, clock: VirtualClock) -> Iterator[Callable[[str], Case]]:
    settings = Settings(home=tmp_path / "home")
    with ExitStack() as stack:

        def make(name: str) -> Case:
            match name:
                case "tasks":
                    return files_case(settings, TasksSink(settings, clock), "tasks")
                case "people":
                    return files_case(settings, PeopleSink(settings, clock), "people")
                case "github":
                    github = stack.enter_context(EmulatedGitHub("t"))
                    place = GitHubSettings(
                        token=SecretStr("t"), repository="acme/site", api_url=github.url
                    )
                    return Case(
                        GitHubSink(place, clock),
                        lambda: [
                            f"{issue['title']}\n{issue['body']}"
                            for issue in github.issues
                        ],
                    )
                case "webhook":
                    hook = stack.enter_context(Receiver())
                    sink = WebhookSink(
                        WebhookSettings(
                            url=SecretStr(hook.url),
                            secret=SecretStr("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
                        ),
                        clock,
                    )
                    return Case(
                        sink,
                        lambda: [
                            *{
                                posted.headers["webhook-id"]: posted.body.decode()
                                for posted in hook.posted
                            }.values()
                        ],
                    )
                case "email":
                    post = stack.enter_context(Postman())
                    mail = EmailSettings(
                        host="127.0.0.1",
                        port=post.port,
                        security="none",
                        sender="a@x.example",
                        to="o@x.example",
                    )
                    return Case(EmailSink(mail, clock), lambda: post.letters)
                case "twilio" | "telnyx":
                    carrier = Carrier()
                    return Case(
                        text_sink(name, carrier, clock),
                        lambda: [message["body"] for message in carrier.sent],
                    )
                case _:
                    return program_case(name, tmp_path, settings)

        yield make


def text_sink(name: str, carrier: Carrier, clock: VirtualClock) -> MessageSink:
    if name == "twilio":
        account = TwilioSettings(
            account_sid="AC1", auth_token=SecretStr("t"), api_url="http://127.0.0.1:1"
        )
        return MessageSink(TwilioMessages(account, "+15550101", carrier), OWNER, clock)
    return MessageSink(
        TelnyxMessages(
            TelnyxSettings(api_key=SecretStr("telnyx-key")), "+15550101", carrier
        ),
        OWNER,
        clock,
    )


def program_case(name: str, folder: Path, settings: Settings) -> Case:
    kept, script = folder / "kept.txt", folder / f"{name}_program.py"
    script.write_text(TOOL if name == "mcp" else DOES_IT)
    command = (sys.executable, str(script), str(kept))
    sink: Sink = (
        McpSink(McpSettings(command=command, tool="keep"))
        if name == "mcp"
        else AgentSink(AgentSettings(command=command), settings.home)
    )
    return Case(sink, lambda: kept.read_text().splitlines() if kept.exists() else [])


EVERY = (
    "tasks",
    "people",
    "github",
    "webhook",
    "email",
    "twilio",
    "telnyx",
    "mcp",
    "agent",
)


@pytest.mark.parametrize("name", EVERY)
def test_a_rehearsal_says_what_would_happen_and_does_nothing(
    name: str, open_case: Callable[[str], Case]
) -> None:
    case = open_case(name)
    assert case.sink.describe_dry_run(make_work(case.sink.name)).startswith("would ")
    assert case.effects() == []


@pytest.mark.parametrize("name", EVERY)
def test_one_delivery_is_one_thing(name: str, open_case: Callable[[str], Case]) -> None:
    case = open_case(name)
    case.sink.deliver(make_work(case.sink.name))
    (effect,) = case.effects()
    assert "thumbnails" in effect


@pytest.mark.parametrize(
    "name", [name for name in EVERY if name not in ("email", "telnyx", "mcp", "agent")]
)
def test_a_sink_that_can_repeat_makes_one_thing_of_one_key_and_two_of_two(
    name: str, open_case: Callable[[str], Case]
) -> None:
    case = open_case(name)
    assert case.sink.can_repeat
    work = make_work(case.sink.name)
    first = case.sink.deliver(work)
    assert case.sink.deliver(work).link == first.link
    assert len(case.effects()) == 1
    case.sink.deliver(replace(work, key=f"{'f' * 32}:{case.sink.name}"))
    assert "".join(case.effects()).count("broken thumbnails") >= 2


@pytest.mark.parametrize("name", ["email", "telnyx", "mcp", "agent"])
def test_a_sink_that_cannot_tell_what_it_has_done_says_so(
    name: str, open_case: Callable[[str], Case]
) -> None:
    assert not open_case(name).sink.can_repeat


@pytest.mark.parametrize("name", EVERY)
def test_words_stay_words(
    name: str, open_case: Callable[[str], Case], tmp_path: Path
) -> None:
    case = open_case(name)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    work = make_work(
        case.sink.name,
        title=NASTY,
        details=f"# Heading\n---\n{NASTY}\n.\n",
        words=NASTY,
        person="../../root",
        due=None,
    )
    case.sink.deliver(work)
    (effect,) = case.effects()
    if name in ("tasks", "people", "github"):
        # what is rendered: not the front matter, not the title
        page = effect.partition("\n---\n" if name == "tasks" else "\n")[2]
        assert "<!-- aftercall: ffff" not in page
        assert "@all" not in page
    if name == "email":
        letter = message_from_string(effect)
        assert (letter["To"], letter["Auto-Submitted"]) == (
            "o@x.example",
            "auto-generated",
        )
    made = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert all(
        path.is_relative_to(tmp_path / "home") or path.name == "kept.txt"
        for path in made
    )


def test_a_text_message_goes_to_a_proven_caller_and_otherwise_to_the_owner(
    clock: VirtualClock,
) -> None:
    carrier = Carrier()
    sink = text_sink("twilio", carrier, clock)
    sink.deliver(make_work("message"))
    sink.deliver(make_work("message", key="1" * 40, trust="unknown"))
    sink.deliver(make_work("message", key="2" * 40, purpose="notice"))
    assert [message["to"] for message in carrier.sent] == ["+15550100", OWNER, OWNER]
    assert all(len(message["body"]) <= 480 for message in carrier.sent)
