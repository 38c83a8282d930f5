"""The pages as a browser asks for them: what is refused, what is escaped, what is never cached."""

import re
from dataclasses import replace

import pytest
from argon2 import PasswordHasher
from fastapi.testclient import TestClient
from pydantic import SecretStr

from aftercall.app import App
from aftercall.config import PAGE_FILE
from aftercall.journal.view import read_words
from aftercall.model.calls import Event
from aftercall.postcall.steps import STEPS
from aftercall.settings import Settings
from aftercall.settings.providers import WebhookSettings
from aftercall.settings.sections import PagesSettings
from aftercall.web.auth import MAX_LOGIN_FAILURES
from api_client import csrf_of, log_in, make_client, make_stranger
from fakes import VirtualClock, make_call
from followup_work import follow, hold_call, hold_requests
from opened_apps import OpenApp
from step_stages import take_call

CALLER = "+15550142"
EVIL = "<script>alert('x')</script>"


@pytest.fixture
def client(app: App) -> TestClient:
    return make_client(app, follow_redirects=False)


@pytest.fixture
def locked(settings: Settings, clock: VirtualClock, open_app: OpenApp) -> TestClient:
    pages = PagesSettings(
        password_hash=SecretStr(PasswordHasher(1, 8, 1).hash("open sesame"))
    )
    app = open_app(
        settings.model_copy(update={"api_token": SecretStr("t0ken"), "pages": pages}),
        clock,
    )
    return make_stranger(app, base_url="https://calls.example")


def test_every_page_answers_with_a_strict_policy(client: TestClient, app: App) -> None:
    row, _ = app.journal.ingest(
        make_call([("caller", EVIL)], caller=CALLER, sid="evil")
    )
    call = f"/calls/{row.live.id}"
    for path in (
        "/",
        "/calls",
        call,
        f"{call}/raw",
        f"{call}/steps",
        "/people",
        f"/people/{CALLER}",
        "/memory",
        "/memory?q=thumbnails",
        "/followups",
        "/tests",
        "/phone",
        "/settings",
        "/docs",
        "/login",
    ):
        page = client.get(path)
        assert page.status_code == 200, path
        assert "script-src 'self';" in page.headers["content-security-policy"]
        assert page.headers["cache-control"] == "no-store"
        assert EVIL not in page.text
        assert len(page.content) < 64_000
        assert not re.search(r"(src|href)=\"(https?:)?//", page.text)


def test_a_call_in_which_nobody_spoke_has_a_page(client: TestClient, app: App) -> None:
    call = make_call([], caller=CALLER)
    app.journal.ingest(call)
    assert client.get(f"/calls/{call.id}").status_code == 200
    assert client.get(f"/calls/{call.id}/story").status_code == 200


def test_a_call_that_is_sealed_while_it_is_read_keeps_its_words(app: App) -> None:
    call = make_call([("agent", "Hello!"), ("caller", "I grow quinces.")])
    app.journal.ingest(call)
    sealed = app.store.get(call.id)
    before = replace(sealed, state="live", archive_name=None)  # as read a moment ago
    row, read, _ = read_words(app.store, app.archive, before)
    assert row == sealed
    assert [turn.text for turn in read.turns] == ["Hello!", "I grow quinces."]


def test_calls_are_found_by_caller_day_line_and_state(
    client: TestClient, app: App
) -> None:
    app.journal.ingest(make_call(caller=CALLER, sid="one"))
    app.journal.ingest(make_call(caller="+15550199", sid="two"))
    assert CALLER in client.get("/calls", params={"caller": CALLER}).text
    assert "+15550199" not in client.get("/calls", params={"caller": CALLER}).text
    assert "No calls match" in client.get("/calls", params={"since": "2030-01-01"}).text
    assert (
        CALLER
        in client.get(
            "/calls",
            params={
                "since": "2026-02-13",
                "until": "2026-02-13",
                "source": "test",
                "state": "sealed",
            },
        ).text
    )
    for day in (
        {"since": "yesterday"},
        {"since": "0001-01-01"},
        {"until": "9999-12-31"},
    ):
        assert "is not a date" in client.get("/calls", params=day).text
    assert "is not a phone number" in client.get("/calls", params={"caller": EVIL}).text


def test_the_transcript_says_who_was_interrupted(client: TestClient, app: App) -> None:
    call = make_call(
        [
            ("agent", "We are open until"),
            ("caller", "Wait, please."),
            ("agent", "Yes?"),
        ],
        caller=CALLER,
        sid="cut",
    )
    cut = Event(
        seq=1,
        kind="barge_in",
        at=call.turns[1].at,
        data={"said": "We are open until six.", "heard": "We are open until"},
    )
    row, _ = app.journal.ingest(call.model_copy(update={"events": (cut,)}))
    page = client.get(f"/calls/{row.live.id}").text
    assert page.count(">interrupted<") == 1
    assert (
        page.index("We are open until")
        < page.index(">interrupted<")
        < page.index("Wait, please.")
    )


def test_the_list_of_calls_goes_on(client: TestClient, app: App) -> None:
    for number in range(53):
        app.journal.ingest(make_call(caller=CALLER, sid=f"n{number}"))
    first = client.get("/calls").text
    older = re.search(r'href="(/calls\?before=[^"]+)"', first)
    assert older
    assert client.get(older[1].replace("&amp;", "&")).text.count('class="row"') == 3


@pytest.mark.parametrize("headers", [{}, {"Origin": "https://evil.example"}])
def test_a_change_needs_a_form_of_ours(
    client: TestClient, headers: dict[str, str]
) -> None:
    token = csrf_of(client.get(f"/people/{CALLER}").text)
    data = {"text": "x", "was": "y", **({"csrf": token} if headers else {})}
    assert (
        client.post(f"/people/{CALLER}/profile", data=data, headers=headers).status_code
        == 403
    )


def test_a_form_of_one_browser_is_no_good_in_another(
    client: TestClient, app: App
) -> None:
    other = make_client(app)
    stolen = csrf_of(other.get("/login").text)
    client.get("/login")
    assert (
        client.post(
            f"/people/{CALLER}/profile", data={"csrf": stolen, "text": "x", "was": ""}
        ).status_code
        == 403
    )


def test_a_locked_page_leads_to_the_login_and_back(locked: TestClient) -> None:
    asked = locked.get("/calls")
    assert (asked.status_code, asked.headers["location"]) == (303, "/login?to=%2Fcalls")
    assert log_in(locked, "nope") == 401
    assert log_in(locked, "t0ken") == 303
    assert locked.get("/calls").status_code == 200
    cookie = next(
        cookie for cookie in locked.cookies.jar if cookie.name == "aftercall_session"
    )
    assert cookie.secure
    assert cookie.has_nonstandard_attr("HttpOnly")


def test_the_password_opens_too(locked: TestClient) -> None:
    assert log_in(locked, "open sesame") == 303
    assert locked.get("/").status_code == 200


def test_guessing_is_slowed_down(locked: TestClient, clock: VirtualClock) -> None:
    for _ in range(MAX_LOGIN_FAILURES):
        assert log_in(locked, "guess") == 401
    assert log_in(locked, "t0ken") == 429
    clock.move(61)
    assert log_in(locked, "t0ken") == 303


def test_a_forged_cookie_opens_nothing(locked: TestClient) -> None:
    locked.cookies.set(
        "aftercall_session",
        "eyJpZCI6IngiLCJpbiI6dHJ1ZX0.forged.forged",
        domain="calls.example",
    )
    assert locked.get("/").status_code == 303


@pytest.mark.parametrize(
    "to", ["https://evil.example", "//evil.example", "/\\evil.example"]
)
def test_a_login_never_leads_elsewhere(locked: TestClient, to: str) -> None:
    token = csrf_of(locked.get("/login").text)
    answer = locked.post("/login", data={"csrf": token, "secret": "t0ken", "to": to})
    assert answer.headers["location"] == "/"


def test_a_long_list_is_shown_in_parts(client: TestClient, app: App) -> None:
    for number in range(18):
        call = hold_call(
            app,
            [("caller", "Please file a note about the shelf.")],
            caller=CALLER,
            sid=f"shelf-{number}",
        )
        follow(app.work, call.conversation)
    noted = app.work.followups.page(limit=50, state="done")
    for row in noted:
        app.corrections.mark_done(row.id, "me")
    overview = client.get("/followups").text
    assert overview.count('<li class="item') == 15
    assert "All of “passed on or done”" in overview
    whole = client.get("/followups?state=done").text
    assert whole.count('<li class="item') == 18
    assert "Older ones" not in whole
    rest = client.get(f"/followups?state=done&before={noted[14].id}").text
    assert rest.count('<li class="item') == 3


INVOICE = [
    ("caller", "Could you send me the invoice?"),
    ("agent", "Sure, I'll email you the invoice."),
    ("caller", "Thank you, bye."),
]


def test_a_promise_of_another_agent_shows_as_unknown_and_can_be_settled(
    client: TestClient, app: App
) -> None:
    follow(app.work, hold_call(app, INVOICE, is_handed_in=True).conversation)
    page = client.get("/followups").text
    assert "outcome unknown" in page
    assert "Not needed: Email you the invoice" in page
    assert "broken</span>" not in page
    assert "mail you the invoice" in client.get("/").text


def test_a_promise_that_no_work_keeps_shows_as_broken(
    client: TestClient, app: App
) -> None:
    follow(app.work, hold_call(app, INVOICE).conversation)
    for path in ("/", "/followups"):
        page = client.get(path).text
        assert "mail you the invoice" in page
        assert "broken" in page


def test_whoever_else_speaks_from_a_phone_has_a_page_of_their_own(
    client: TestClient, app: App
) -> None:
    for sid, name, town, food in (
        ("1", "This is Tom", "Porto", "oatmeal"),
        ("2", "This is Anna, not Tom", "Utrecht", "saffron"),
    ):
        lines = (
            f"{name}. I prefer calls in the evening.",
            f"My sister Lucy lives in {town}.",
            f"Please remind me to buy {food}.",
        )
        said = [
            (speaker, text)
            for line in lines
            for speaker, text in (("caller", line), ("agent", "Noted."))
        ]
        call = hold_call(app, said, caller=CALLER, sid=sid)
        for step in STEPS:
            app.step_runner.run(call.id, step)
    anna = "/people/%2B15550142%23anna"
    assert f'href="{anna}"' in client.get(f"/people/{CALLER}").text
    page = client.get(anna).text
    assert [
        word for word in ("Utrecht", "saffron", "Porto", "oatmeal") if word in page
    ] == [
        "Utrecht",
        "saffron",
    ]
    assert f"Tom, Anna <small>{CALLER}</small>" in client.get("/people").text
    facts = client.get("/api/facts", params={"caller": f"{CALLER}#anna"}).json()[
        "facts"
    ]
    assert [fact["content"] for fact in facts if "Utrecht" in fact["content"]]
    assert f'href="{anna}"' in client.get(f"/memory/facts/{facts[0]['id']}").text
    erasing = client.post(
        f"{anna}/erase", data={"csrf": csrf_of(page), "typed": CALLER}
    )
    assert erasing.status_code == 422
    assert "work by number" in erasing.text
    assert "Utrecht" in client.get(anna).text


def test_unknown_calls_and_withheld_callers_are_clear_errors(
    client: TestClient,
) -> None:
    assert client.get("/calls/nope").status_code == 404
    assert client.get("/people/Bob").status_code == 422


def test_the_settings_page_shows_no_address_that_opens_something(
    settings: Settings, open_app: OpenApp
) -> None:
    webhook = WebhookSettings(url=SecretStr("https://hooks.example/canary?key=canary"))
    app = open_app(settings.model_copy(update={"webhook": webhook}))
    page = make_client(app).get("/settings").text
    assert "https://hooks.example/… (rest hidden)" in page
    assert "canary" not in page


def test_the_checklist_stands_on_the_front_page_until_a_call_comes_from_outside(
    app: App, client: TestClient
) -> None:
    title = "Until the first real call"
    assert title in client.get("/").text
    app.journal.ingest(make_call(caller=CALLER, source="browser", sid="b"))
    page = client.get("/").text
    assert title in page
    assert "<s>Call your agent from this browser</s>" in page
    app.journal.ingest(make_call(caller=CALLER, source="twilio", sid="t"))
    for path in ("/", "/settings"):
        assert title not in client.get(path).text


def test_a_setting_is_saved_for_the_next_start_and_a_wrong_one_refused(
    app: App, client: TestClient
) -> None:
    token = csrf_of(client.get("/settings").text)

    def save(key: str, value: str) -> int:
        form = {"csrf": token, "key": key, "value": value}
        return client.post("/settings", data=form).status_code

    assert save("work.daily_limit", "7") == 303
    page = client.get("/settings").text
    assert "waits for a restart" in page
    assert (app.settings.home / PAGE_FILE).read_text() == '"work.daily_limit" = "7"\n'
    assert save("work.daily_limit", "many") == 422
    assert save("api_token", "mine now, and long enough") == 422
    assert "waits for a restart" in client.get("/settings").text
    assert save("work.daily_limit", "") == 303
    assert "waits for a restart" not in client.get("/settings").text
    assert [line.subject for line in app.audit.list_recent()] == [
        "work.daily_limit",
        "work.daily_limit",
    ]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/nothing/here", 404, "There is nothing here"),
        ("/calls/none", 404, "There is nothing here"),
        ("/people/nobody", 422, "That does not fit"),
        ("/followups?state=nonsense", 422, "That does not fit"),
    ],
)
def test_an_error_is_a_page_for_people_and_json_for_programs(
    client: TestClient, path: str, status: int, words: str
) -> None:
    shown = client.get(path, headers={"Accept": "text/html"})
    assert (shown.status_code, shown.headers["content-type"]) == (
        status,
        "text/html; charset=utf-8",
    )
    assert words in shown.text
    assert 'href="/">Today</a>' in shown.text
    told = client.get(f"/api{path}", headers={"Accept": "application/json"})
    assert told.json()["error"]["code"]


def test_search_finds_words_names_numbers_and_requests_and_marks_them(
    app: App, client: TestClient
) -> None:
    (row,) = hold_requests(app, "plumber")
    app.step_runner.run(row.call_id, "index")
    page = client.get("/search", params={"q": "plumber"}).text
    assert "<mark>plumber</mark>" in page
    assert f'href="/followups/{row.id}"' in page
    assert f'href="/calls/{row.call_id}#turn-1"' in page
    assert CALLER in client.get("/search", params={"q": "5550142"}).text
    narrowed = client.get("/search", params={"q": "plumber", "since": "2030-01-01"})
    assert "Take off: since 2030-01-01" in narrowed.text
    assert f'href="/calls/{row.call_id}#turn-1"' not in narrowed.text
    assert "Nothing matches" in client.get("/search", params={"q": "zebra"}).text


def test_a_fact_is_retired_from_its_page_and_undone(
    app: App, client: TestClient
) -> None:
    take_call(app, CALLER, "I live in Porto.", "I prefer tea.", "Thanks.")
    found = re.search(
        r'href="(/memory/facts/\w+)">I live in Porto', client.get("/memory").text
    )
    assert found
    page = client.get(found[1]).text
    assert "It was never true" in page
    form = {"csrf": csrf_of(page), "what": "fact", "of": found[1].rpartition("/")[2]}
    form |= {"is_removal": "true", "back": found[1]}
    client.post("/corrections", data=form)
    retired = client.get(found[1]).text
    assert "Put right" in retired
    assert "A person said that this was never true." in retired
    assert "I live in Porto" not in client.get("/memory").text
    (made,) = app.corrections.store.page(limit=9)
    client.post("/corrections/undo", data={"csrf": csrf_of(retired), "of": made.id})
    assert "I live in Porto" in client.get("/memory").text


def test_what_could_not_be_merged_into_a_profile_is_shown(
    client: TestClient, app: App
) -> None:
    app.journal.ingest(make_call(caller=CALLER))
    folder = app.settings.home / "workspace" / "people" / CALLER
    folder.mkdir(parents=True)
    (folder / "USER.conflict.md").write_text(f"- **Name:** {EVIL} William\n")
    shown = client.get(f"/people/{CALLER}").text
    assert "What could not be merged: USER.conflict.md" in shown
    assert "William" in shown
    assert EVIL not in shown
