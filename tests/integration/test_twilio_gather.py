"""A Twilio number and the receptionist, through the webhooks, signed by Twilio's own library."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr
from twilio.request_validator import RequestValidator

from aftercall.app import App, build
from aftercall.clock import SystemClock
from aftercall.memory.fact_store import FactFilter
from aftercall.overload import BUSY
from aftercall.postcall.steps import STEPS
from aftercall.settings import Settings
from aftercall.settings.providers import TwilioSettings
from aftercall.settings.sections import LimitSettings
from aftercall.web.server import make_server
from opened_apps import DISK_PATIENCE_S, OpenApp

TOKEN = "twilio-token"
PUBLIC = "https://calls.example"
INSIDE = "http://10.0.0.7"
SID, OTHER_SID = "CA" + "0" * 32, "CA" + "1" * 32


class Twilio:
    """The carrier's side: posts forms with a real signature, and reads the TwiML that comes
    back.
    """

    def __init__(self, client: TestClient, token: str = TOKEN, sid: str = SID) -> None:
        self._client = client
        self._sid = sid
        self._validator = RequestValidator(token)
        self.next: str = f"{PUBLIC}/twilio/voice"

    def go_on(self, client: TestClient) -> "Twilio":
        """The same call at a server that was started after the first one."""
        twilio = Twilio(client, sid=self._sid)
        twilio.next = self.next
        return twilio

    def post(self, url: str, **fields: str) -> Any:
        form = {
            "CallSid": self._sid,
            "AccountSid": "AC" + "0" * 32,
            "From": "+15550100",
            "To": "+15550101",
            "Direction": "inbound",
        } | fields
        parts = urlsplit(url)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        return self._client.post(
            target,
            data=form,
            headers={
                "X-Twilio-Signature": self._validator.compute_signature(url, form)
            },
        )

    def say(self, text: str | None = None, **fields: str) -> str:
        """What the caller hears after saying `text` (nothing: they ring, or are silent)."""
        answer = self.post(
            self.next,
            CallStatus="in-progress",
            **({"SpeechResult": text} if text else {}),
            **fields,
        )
        assert answer.status_code == 200
        response = ElementTree.fromstring(answer.text)
        gather = response.find("Gather")
        if gather is not None:
            self.next = gather.attrib["action"]
            assert [redirect.text for redirect in response.findall("Redirect")] == [
                self.next
            ]
        else:
            assert response.find("Hangup") is not None
            self.next = ""
        return "".join(say.text or "" for say in response.iter("Say"))


@contextmanager
def serving_once(settings: Settings) -> Iterator[Twilio]:
    """A server that is gone afterwards."""
    app = build(settings, SystemClock(), database_timeout_s=DISK_PATIENCE_S)
    with TestClient(make_server(app), base_url=INSIDE) as client:
        yield Twilio(client)
    app.close()


@pytest.fixture
def phone_settings(settings: Settings) -> Settings:
    return settings.model_copy(
        update={
            "public_url": PUBLIC,
            "twilio": TwilioSettings(auth_token=SecretStr(TOKEN)),
        }
    )


@pytest.fixture
def live(phone_settings: Settings, open_app: OpenApp) -> App:
    return open_app(phone_settings, SystemClock())


@pytest.fixture
def client(live: App) -> Iterator[TestClient]:
    with TestClient(make_server(live), base_url=INSIDE) as client:
        yield client


def said(app: App) -> list[tuple[str, str]]:
    (row,) = app.store.list_page(limit=5)
    call, _ = app.archive.read(str(row.archive_name))
    return [(turn.speaker, turn.text) for turn in call.turns]


def test_a_whole_call_is_answered_confirmed_closed_and_kept(
    client: TestClient, live: App
) -> None:
    twilio = Twilio(client)
    assert twilio.say() == live.settings.receptionist.greeting
    assert "call the plumber" in twilio.say(
        "Please call the plumber.", Confidence="0.91"
    )
    assert twilio.say("That's all, bye.").endswith("Goodbye!")
    twilio.post(f"{PUBLIC}/twilio/status", CallStatus="completed")
    (row,) = live.store.list_page(limit=5)
    assert (
        row.live.source,
        row.live.sid,
        row.live.caller,
        row.state,
        row.end_reason,
    ) == (
        "twilio",
        SID,
        "+15550100",
        "sealed",
        "agent_hung_up",
    )
    assert [speaker for speaker, _ in said(live)] == [
        "agent",
        "caller",
        "agent",
        "caller",
        "agent",
    ]
    call, _ = live.archive.read(str(row.archive_name))
    assert call.turns[1].confidence == 0.91


def test_the_carrier_tells_when_the_caller_has_hung_up_once_or_twice(
    client: TestClient, live: App
) -> None:
    twilio = Twilio(client)
    twilio.say()
    for _ in range(2):
        assert (
            twilio.post(f"{PUBLIC}/twilio/status", CallStatus="completed").status_code
            == 204
        )
    (row,) = live.store.list_page(limit=5)
    assert (row.state, row.end_reason) == ("sealed", "caller_hung_up")


def test_webhooks_that_come_twice_or_late_change_nothing(
    client: TestClient, live: App
) -> None:
    twilio = Twilio(client)
    first = twilio.say()
    twilio.next = f"{PUBLIC}/twilio/voice"
    assert twilio.say() == first
    open_question = twilio.next
    answer = twilio.say("Please call the plumber.")
    twilio.next = open_question
    assert twilio.say("Please call the plumber.") == answer
    twilio.post(f"{PUBLIC}/twilio/status", CallStatus="completed")
    twilio.next = open_question
    assert twilio.say("Please call the plumber.") == "Goodbye!"
    assert said(live) == [
        ("agent", first),
        ("caller", "Please call the plumber."),
        ("agent", answer),
    ]


def test_a_silent_caller_is_asked_twice_and_then_let_go(
    client: TestClient, live: App
) -> None:
    twilio = Twilio(client)
    twilio.say()
    assert [twilio.say(), twilio.say()] == ["Are you still there?"] * 2
    assert twilio.say().startswith("I can't hear you")
    twilio.post(f"{PUBLIC}/twilio/status", CallStatus="completed")
    assert said(live)[-1][0] == "agent"


def test_a_call_that_outlives_the_server_goes_on(
    phone_settings: Settings, open_app: OpenApp
) -> None:
    """On SQLite as a new leg; on Postgres another process may go on with the call itself."""
    with serving_once(phone_settings) as twilio:
        twilio.say()
        twilio.say("Please call the plumber.")
    after = open_app(phone_settings, SystemClock())
    with TestClient(make_server(after), base_url=INSIDE) as client:
        twilio = twilio.go_on(client)
        assert "water the plants" in twilio.say("And remind me to water the plants.")
        twilio.post(f"{PUBLIC}/twilio/status", CallStatus="completed")
        second, *before = after.store.list_page(limit=5)
    assert second.state == "sealed"
    if not before:
        assert (after.database.dialect, second.live.sid) == ("postgresql", SID)
        assert second.turn_count == 5
        return
    (first,) = before
    assert (second.live.resumes, second.live.conversation) == (
        first.live.id,
        first.live.id,
    )
    assert second.live.metadata["call_sid"] == SID


FORGED = {"StirVerstat": "TN-Validation-Failed-A"}


def hang_up(twilio: Twilio, app: App) -> None:
    twilio.post(f"{PUBLIC}/twilio/status", CallStatus="completed")
    (row, *_) = app.store.list_page(limit=1)
    for name in STEPS:
        app.step_runner.run(row.live.id, name)


def test_a_forged_number_neither_hears_nor_writes_that_numbers_memory(
    client: TestClient, live: App
) -> None:
    owner = Twilio(client)
    owner.say()
    owner.say("This is Tom. I prefer the tandem parachute.")
    owner.say("Please remind me to buy oatmeal tomorrow.")
    hang_up(owner, live)
    forger = Twilio(client, sid=OTHER_SID)
    heard = [forger.say(**FORGED), forger.say("What did we talk about last time?")]
    heard.append(forger.say("I am Mallory and I prefer the bungee rope."))
    hang_up(forger, live)
    assert heard[0] == live.settings.receptionist.greeting
    assert not any(word in " ".join(heard) for word in ("Tom", "oatmeal", "tandem"))
    (row, _) = live.store.list_page(limit=5)
    assert (row.live.caller, row.live.verified) == (None, False)
    told = str(live.composer.preview("+15550100"))
    assert "oatmeal" in told
    assert "Mallory" not in told
    assert "bungee" not in told
    assert "bungee" not in str(live.facts.page(FactFilter()))


def test_a_forged_number_stays_refused_when_the_server_is_restarted(
    phone_settings: Settings, open_app: OpenApp
) -> None:
    with serving_once(phone_settings) as twilio:
        twilio.say(**FORGED)
    after = open_app(phone_settings, SystemClock())
    with TestClient(make_server(after), base_url=INSIDE) as client:
        twilio = twilio.go_on(client)
        twilio.say(
            "Remind me to water the plants."
        )  # Twilio may not repeat the verdict
        twilio.post(f"{PUBLIC}/twilio/status", CallStatus="completed")
        callers = {row.live.caller for row in after.store.list_page(limit=5)}
    assert callers == {None}


@pytest.mark.parametrize(
    "caller",
    ["anonymous", "sip:bob@example.com", "client:alice", "+266696687", "garbage", ""],
)
def test_callers_of_every_kind_are_answered(
    client: TestClient, live: App, caller: str
) -> None:
    assert Twilio(client).post(f"{PUBLIC}/twilio/voice", From=caller).status_code == 200


def test_what_twilio_did_not_sign_is_refused(client: TestClient, live: App) -> None:
    stranger = Twilio(client, token="another-token")
    assert stranger.post(f"{PUBLIC}/twilio/voice").status_code == 403
    assert (
        stranger.post(f"{PUBLIC}/twilio/status", CallStatus="completed").status_code
        == 403
    )
    assert client.post("/twilio/voice", data={"CallSid": SID}).status_code == 403
    assert live.store.list_page(limit=5) == []


def test_without_a_token_and_an_address_the_route_says_what_is_missing(
    app: App,
) -> None:
    answer = TestClient(make_server(app), base_url=INSIDE).post(
        "/twilio/voice", data={"CallSid": SID}
    )
    assert answer.status_code == 503
    assert "TWILIO_AUTH_TOKEN" in answer.json()["error"]["message"]


def test_a_call_too_many_hears_that_all_lines_are_busy_and_the_first_goes_on(
    phone_settings: Settings, open_app: OpenApp
) -> None:
    limits = LimitSettings(live_calls=1)
    app = open_app(phone_settings.model_copy(update={"limits": limits}), SystemClock())
    with TestClient(make_server(app), base_url=INSIDE) as client:
        first, second = Twilio(client), Twilio(client, sid=OTHER_SID)
        assert first.say() == app.settings.receptionist.greeting
        assert second.say() == BUSY
        assert "call the plumber" in first.say("Please call the plumber.")
        assert first.say("That's all, bye.").endswith("Goodbye!")
        first.post(f"{PUBLIC}/twilio/status", CallStatus="completed")
        again = Twilio(client, sid=OTHER_SID)
        assert again.say() != BUSY
