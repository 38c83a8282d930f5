"""What single sinks do beyond their contract: signatures, faults, pages that people edit."""

import base64
import hashlib
import hmac
import json
import unicodedata
from collections.abc import Iterator
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from aftercall.errors import ConfigError, OutcomeUnknown, SinkRefused, SinkUnavailable
from aftercall.lab.services import EmulatedGitHub
from aftercall.model.followups import SinkWork
from aftercall.settings import Settings
from aftercall.settings.providers import (
    EmailSettings,
    GitHubSettings,
    McpSettings,
    TelnyxSettings,
    TwilioSettings,
    WebhookSettings,
)
from aftercall.settings.sections import WorkSettings
from aftercall.work.context import SinkRouter, make_sinks
from aftercall.work.sinks.command import McpSink
from aftercall.work.sinks.http import GitHubSink, WebhookSink
from aftercall.work.sinks.markdown import add_note, make_calendar, replace_block, slug
from aftercall.work.sinks.message import (
    EmailSink,
    TelnyxMessages,
    TwilioMessages,
    make_carrier,
)
from fakes import START, VirtualClock
from mail_server import Postman
from webhook_receiver import Receiver

WORK = SinkWork(
    key="0" * 32 + ":x",
    purpose="request",
    kind="issue",
    title="Open a bug about the xylophone page",
    due="2026-02-17",
)


@pytest.fixture
def github() -> Iterator[EmulatedGitHub]:
    with EmulatedGitHub("t") as github:
        yield github


def github_sink(github: EmulatedGitHub, key: str = "t") -> GitHubSink:
    return GitHubSink(
        GitHubSettings(
            token=SecretStr(key), repository="acme/site", api_url=github.url
        ),
        VirtualClock(),
    )


def test_an_issue_whose_answer_was_lost_is_found_again(github: EmulatedGitHub) -> None:
    github.faults.append("drop_after_work")
    with pytest.raises(SinkUnavailable):
        github_sink(github).deliver(WORK)
    assert (
        github_sink(github).deliver(WORK).link
        == "https://github.com/acme/site/issues/41"
    )
    assert len(github.issues) == 1


@pytest.mark.parametrize("fault", ["drop_before_work", "limited", "down"])
def test_a_github_that_is_away_is_tried_again(
    github: EmulatedGitHub, fault: str
) -> None:
    github.faults.append(fault)  # type: ignore[arg-type]
    with pytest.raises(SinkUnavailable):
        github_sink(github).deliver(WORK)
    assert github.issues == []


def test_a_github_that_refuses_the_token_says_so_without_what_was_said(
    github: EmulatedGitHub,
) -> None:
    with pytest.raises(SinkRefused, match="answered 401") as wrong:
        github_sink(github, "wrong").deliver(WORK)
    assert "xylophone" not in str(wrong.value)


def test_a_webhook_carries_the_signature_that_the_standard_describes() -> None:
    secret = base64.b64encode(b"a secret of enough length").decode()
    with Receiver() as hook:
        WebhookSink(
            WebhookSettings(
                url=SecretStr(hook.url), secret=SecretStr(f"whsec_{secret}")
            ),
            VirtualClock(),
        ).deliver(WORK)
    (posted,) = hook.posted
    head = f"{posted.headers['webhook-id']}.{posted.headers['webhook-timestamp']}.".encode()
    digest = hmac.new(
        base64.b64decode(secret), head + posted.body, hashlib.sha256
    ).digest()
    assert (
        posted.headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
    )
    assert posted.headers["webhook-timestamp"] == str(int(START.timestamp()))
    body = json.loads(posted.body)
    assert (body["type"], body["data"]["title"]) == ("followup.request", WORK.title)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (0, SinkUnavailable),
        (500, SinkUnavailable),
        (429, SinkUnavailable),
        (410, SinkRefused),
    ],
)
def test_a_webhook_is_tried_again_where_that_may_help(
    status: int, error: type[Exception]
) -> None:
    with Receiver() as hook:
        hook.answers.append(status)
        sink = WebhookSink(WebhookSettings(url=SecretStr(hook.url)), VirtualClock())
        with pytest.raises(error):
            sink.deliver(WORK)
        sink.deliver(WORK)
    assert len({posted.headers["webhook-id"] for posted in hook.posted}) == 1


@pytest.mark.parametrize(
    ("secret", "said"),
    [("whsec_???", "is not base64"), ("whsec_c2VjcmV0", "holds 6 bytes and needs 24")],
)
def test_a_webhook_secret_that_is_none_or_weak_is_refused(
    secret: str, said: str
) -> None:
    url = SecretStr("http://x.example")
    with pytest.raises(ConfigError, match=rf"webhook\.secret: {said}"):
        WebhookSink(WebhookSettings(url=url, secret=SecretStr(secret)), VirtualClock())


@pytest.mark.parametrize(
    ("fault", "error", "letters"),
    [
        ("drop_after_data", OutcomeUnknown, 1),
        ("refuse", SinkRefused, 0),
        ("busy", SinkUnavailable, 0),
    ],
)
def test_a_letter_whose_fate_is_unknown_is_not_sent_again_by_itself(
    fault: str, error: type[Exception], letters: int
) -> None:
    with Postman(fault=fault) as post:  # type: ignore[arg-type]
        mail = EmailSettings(
            host="127.0.0.1",
            port=post.port,
            security="none",
            sender="a@x.example",
            to="o@x.example",
        )
        with pytest.raises(error):
            EmailSink(mail, VirtualClock()).deliver(WORK)
    assert len(post.letters) == letters


def test_a_mail_server_that_is_not_there_is_tried_again() -> None:
    with pytest.raises(SinkUnavailable):
        EmailSink(
            EmailSettings(
                host="127.0.0.1", port=1, security="none", sender="a@x", to="b@x"
            ),
            VirtualClock(),
        ).deliver(WORK)


def test_a_tool_server_that_cannot_be_started_is_tried_again() -> None:
    with pytest.raises(SinkUnavailable):
        McpSink(McpSettings(command=("/no/such/server",), tool="keep")).deliver(WORK)


@given(st.text(), st.dates(min_value=date(2000, 1, 1), max_value=date(2099, 1, 1)))
def test_a_calendar_file_is_folded_and_escaped_and_says_the_day(
    title: str, day: date
) -> None:
    work = SinkWork(
        key="k:tasks",
        purpose="request",
        kind="task",
        title=" ".join(title.split()),
        due=day.isoformat(),
    )
    text = make_calendar(work, START)
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))
    assert f"DTSTART;VALUE=DATE:{day:%Y%m%d}" in text
    assert f"DTEND;VALUE=DATE:{day + timedelta(days=1):%Y%m%d}" in text
    unfolded = text.replace("\r\n ", "")
    assert (
        len(
            [
                line
                for line in unfolded.split("\r\n")
                if line.startswith(("BEGIN:VEVENT", "SUMMARY:"))
            ]
        )
        == 2
    )


@given(st.text())
def test_a_slug_is_a_safe_name(title: str) -> None:
    name = slug(title)
    assert name
    assert all(
        char.isalnum() or char == "-" or unicodedata.category(char).startswith("M")
        for char in name
    )
    assert len(name.encode()) <= 240


def test_people_of_any_script_have_pages_of_their_own() -> None:
    assert len({slug(name) for name in ("李雷", "Юрий", "Zoë", "zoe", "Jürgen")}) == 5
    assert slug("Carl") == slug("  CARL ")


def test_a_note_is_added_once_and_the_rest_of_the_page_stays() -> None:
    page = "# Carl\n\nWorks at ACME.\n\n## Notes\n\n- old\n\n## Family\n\nTwo cats.\n"
    added = add_note(
        page, "Carl", "- new <!-- aftercall: k -->", "<!-- aftercall: k -->"
    )
    assert added == page.replace("- old\n", "- old\n- new <!-- aftercall: k -->\n")
    assert (
        add_note(added, "Carl", "- new <!-- aftercall: k -->", "<!-- aftercall: k -->")
        == added
    )


def test_a_journal_entry_is_written_anew_between_its_marks_only() -> None:
    first = replace_block(None, "# 15:41", "one")
    edited = first.replace("# 15:41", "# My title") + "\nMy own thoughts.\n"
    assert replace_block(edited, "# 15:41", "two") == edited.replace("one", "two")
    assert replace_block("Somebody emptied it.", "# 15:41", "two").startswith(
        "Somebody emptied it.\n\n<!-- aftercall: begin -->\ntwo"
    )


def test_a_route_to_a_sink_that_is_not_set_up_is_a_mistake_in_the_settings() -> None:
    for work in (
        WorkSettings(routes={"issue": "github"}),
        WorkSettings(notice="email"),
    ):
        settings = Settings(work=work)
        with pytest.raises(ConfigError, match="is not set up; it needs"):
            SinkRouter(settings, make_sinks(settings, VirtualClock()))
    with pytest.raises(ValueError, match="is not one of"):
        WorkSettings(routes={"issue": "gihtub"})
    with pytest.raises(ValueError, match=r"is not TRUST or TRUST\.KIND"):
        WorkSettings(policy={"unknown.isue": "do"})


def test_without_settings_everything_stays_on_this_machine() -> None:
    settings = Settings()
    sinks = make_sinks(settings, VirtualClock())
    router = SinkRouter(settings, sinks)
    assert set(sinks) == {"tasks", "people"}
    assert {
        kind: router.route(kind) for kind in ("issue", "reminder", "note", "message")
    } == {
        "issue": ("tasks",),
        "reminder": ("tasks",),
        "note": ("people",),
        "message": ("tasks",),
    }


def test_messages_go_out_from_the_number_of_the_carrier_whose_keys_are_set() -> None:
    telnyx = TelnyxSettings(api_key=SecretStr("KEY0123"), phone_number="+15550100001")
    assert isinstance(make_carrier(Settings(telnyx=telnyx)), TelnyxMessages)
    twilio = TwilioSettings(
        account_sid="AC" + "0" * 32,
        auth_token=SecretStr("secret"),
        phone_number="+15550100002",
    )
    assert isinstance(make_carrier(Settings(twilio=twilio)), TwilioMessages)
    assert (
        make_carrier(Settings(telnyx=TelnyxSettings(api_key=SecretStr("KEY0123"))))
        is None
    )
