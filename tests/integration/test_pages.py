"""The pages as a browser asks for them: what is refused, what is escaped, what is never cached."""

import json
import re

import pytest
from argon2 import PasswordHasher
from fastapi.testclient import TestClient
from pydantic import SecretStr

from aftercall.app import App
from aftercall.model.turns import Event
from aftercall.postcall.steps import STEPS
from aftercall.settings import Settings
from aftercall.settings.providers import WebhookSettings
from aftercall.settings.sections import PagesSettings
from aftercall.testing import VirtualClock, make_call
from aftercall.web.auth import MAX_LOGIN_FAILURES
from api_client import csrf_of, log_in, make_client, make_stranger
from followup_work import follow, hold_call
from opened_apps import OpenApp

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
        assert len(page.content) < 60_000
        assert not re.search(r"(src|href)=\"(https?:)?//", page.text)


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
    assert page.count("interrupted by the caller") == 1
    assert (
        page.index("We are open until")
        < page.index("interrupted by the caller")
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


def test_a_test_run_is_shown_with_its_report_apart(
    client: TestClient, app: App
) -> None:
    folder = app.settings.home / "tests" / "01M7F376HEJR30T00S2PT2KF9Q"
    folder.mkdir(parents=True)
    call = {"measures": {"latency_p50_s": 0.25}}
    results = [
        {"scenario": "a_refill", "verdict": "passed", "findings": [], "calls": [call]},
        {"scenario": EVIL, "verdict": "failed", "findings": [1], "calls": []},
    ]
    run = {
        "id": folder.name,
        "target": EVIL,
        "started_at": "2026-11-15T07:54:42Z",
        "seconds": 4.1,
        "passed": 1,
        "failed": 1,
        "runs": 2,
    }
    (folder / "report.json").write_text(json.dumps(run | {"results": results}))
    (folder / "report.html").write_text("<h1>report</h1>")
    for path in (
        "/tests",
        f"/tests/{folder.name}",
        f"/tests/compare?a={folder.name}&b={folder.name}",
    ):
        page = client.get(path)
        assert page.status_code == 200
        assert EVIL not in page.text
    assert "250 ms" in client.get(f"/tests/{folder.name}").text
    assert (
        client.get(f"/tests/{folder.name}/report")
        .headers["content-security-policy"]
        .startswith("sandbox")
    )
    assert client.get("/tests/..%2F..%2Fetc").status_code == 404
    assert client.get("/tests/nope").status_code == 404


def test_a_long_shelf_is_shown_in_parts(client: TestClient, app: App) -> None:
    for number in range(18):
        call = hold_call(
            app,
            [("caller", "Please file a note about the shelf.")],
            caller=CALLER,
            sid=f"shelf-{number}",
        )
        follow(app.work, call.conversation)
    done = app.work.followups.page(limit=50, state="done")
    first = client.get("/followups").text
    assert first.count('<li class="item">') == 15
    assert "All of “done or noted”" in first
    whole = client.get("/followups?shelf=done or noted").text
    assert whole.count('<li class="item">') == 18
    assert "Older ones" not in whole
    assert (
        client.get(f"/followups?shelf=done or noted&before={done[14].id}").text.count(
            '<li class="item">'
        )
        == 3
    )


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
    assert "Outcome unknown" in page
    assert "Settle: Email you the invoice" in page
    assert "broken" not in page
    assert "mail you the invoice" not in client.get("/").text


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
    assert "Anna" in client.get("/people").text
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
