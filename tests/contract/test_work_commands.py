"""Follow-ups and health as a person or a program asks for them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from aftercall.app import App, build
from aftercall.cli.main import program
from aftercall.config import load_config
from aftercall.errors import NotFound, NotWaiting, RefusedInput, SinkUnavailable
from api_client import make_client, make_stranger
from followup_work import follow, hold_call
from webhook_receiver import Receiver

BUG = "Open a bug about the broken thumbnails"


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with Receiver() as hook:
        yield hook


@pytest.fixture
def environment(
    tmp_path: Path, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """Issues go to a webhook and are held; the owner is told through it, too."""
    settings = {
        "AFTERCALL_HOME": str(tmp_path / "home"),
        "AFTERCALL_WEBHOOK_URL": hook.url,
        "AFTERCALL_WORK_ROUTES": "issue=webhook, task=tasks+webhook",
        "AFTERCALL_WORK_POLICY": "unknown.note=refuse",
        "AFTERCALL_WORK_NOTICE": "webhook",
        "AFTERCALL_WORK_TRUSTED": "+15550109, +1 555 010 8888",
        "AFTERCALL_AGENT_ENVIRONMENT": "A,B",
        "AFTERCALL_AGENT_COMMAND": "gptme --non-interactive 'do it'",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return settings


@pytest.fixture
def home(environment: dict[str, str]) -> Iterator[App]:
    app = build(load_config(environ=environment).settings)
    yield app
    app.close()


def run(*words: str) -> Result:
    return CliRunner().invoke(program, list(words))


def run_json(*words: str) -> Any:
    done = run(*words, "--json")
    return json.loads(done.output)


def test_settings_are_read_from_the_environment(home: App) -> None:
    work, agent = home.settings.work, home.settings.agent
    assert work.routes == {"issue": "webhook", "task": "tasks+webhook"}
    assert work.policy == {"unknown.note": "refuse"}
    assert work.trusted == ("+15550109", "+1 555 010 8888")
    assert (agent.command, agent.environment) == (
        ("gptme", "--non-interactive", "do it"),
        ("A", "B"),
    )


def test_a_held_request_is_listed_shown_approved_and_its_history_tells_it(
    home: App, hook: Receiver
) -> None:
    call = hold_call(home)
    follow(home.work, call.conversation)
    assert {item["title"]: item["state"] for item in run_json("followups", "list")} == {
        BUG: "held",
        "Remind me to follow up with Markus on Tuesday": "done",
        "File a note about the Carl conversation": "refused",
    }
    (held,) = run_json("followups", "list", "--state", "held")
    assert BUG in run("followups", "list", "--caller", "+15550100").output
    assert run("followups", "list", "--caller", "+15550142").output.startswith(
        "Nothing has been asked for yet"
    )
    assert run_json("followups", "approve", held["id"])["state"] == "open"
    shown = run_json("followups", "show", held["id"])
    assert [change["what"] for change in shown["history"]] == ["held", "open"]
    assert "command line" in shown["history"][1]["who"]
    assert "said: " in run("followups", "show", held["id"]).output
    assert isinstance(run("followups", "approve", held["id"]).exception, NotWaiting)
    assert isinstance(run("followups", "approve", "nothing").exception, NotFound)
    assert isinstance(
        run("followups", "list", "--state", "lost").exception, RefusedInput
    )
    assert run("followups", "reject", held["id"]).output.split() == [
        held["id"],
        "refused",
    ]


def test_what_is_noted_waits_for_a_person_who_says_that_it_is_done(home: App) -> None:
    follow(home.work, hold_call(home).conversation)
    assert run_json("followups", "list", "--state", "done") == []
    (noted,) = run_json("followups", "list", "--state", "noted")
    assert "waits for a person" in run("followups", "list").output
    assert (
        "only written down: a person must do it"
        in run("followups", "show", noted["id"]).output
    )
    assert run_json("followups", "list", "--state", "to do") == [noted]
    client = make_client(home)
    done = client.post(f"/api/followups/{noted['id']}/done").json()
    assert (done["state"], done["standing"]) == ("done", "done")
    (correction,) = run_json("corrections", "list")
    assert (correction["what"], correction["old"]) == ("done", "noted")
    run("corrections", "undo", correction["id"])
    assert run_json("followups", "done", noted["id"])["standing"] == "done"
    assert isinstance(run("followups", "done", noted["id"]).exception, NotWaiting)


def test_a_notice_that_nobody_took_is_laid_aside_and_can_be_sent_again(
    home: App, hook: Receiver
) -> None:
    hook.answers.append(410)
    call = hold_call(home)
    with pytest.raises(Exception, match="webhook: answered 410"):
        follow(home.work, call.conversation)
    (dead,) = home.work.deliveries.dead()
    assert dead.reason == "webhook: answered 410; check its address and its key"
    health = run("health", "--json")
    assert (health.exit_code, json.loads(health.output)["unsent"]) == (2, 1)
    hook.answers.append(503)
    assert isinstance(run("followups", "resend", dead.key).exception, SinkUnavailable)
    assert [one["key"] for one in run_json("events", "undelivered")] == [dead.key]
    assert dead.key in run("events", "undelivered").output
    assert run_json("followups", "resend", dead.key)["state"] == "done"
    assert run("events", "undelivered").output == "Everything was delivered.\n"
    assert [posted.headers["webhook-id"] for posted in hook.posted] == [
        hook.posted[0].headers["webhook-id"]
    ] * 3
    assert run("health").exit_code == 0


def test_follow_up_work_that_failed_is_done_again_by_hand(home: App) -> None:
    call = hold_call(home)
    home.work.runs.mark_running(call.conversation, 1, home.clock.now())
    home.work.runs.finish(
        call.conversation,
        1,
        "failed",
        "the account's quota is used up",
        home.clock.now(),
    )
    told = run("calls", "show", call.id).output
    assert (
        "follow-up work failed: the account's quota is used up; `aftercall calls rerun "
        f"{call.id} followup`"
    ) in told
    assert run("calls", "rerun", call.id, "followup").exit_code == 0
    assert home.work.runs.get(call.conversation).state == "due"
    assert isinstance(run("calls", "rerun", call.id, "followup").exception, NotWaiting)


def test_health_says_in_one_word_and_one_number_how_things_are(home: App) -> None:
    assert (run("health").exit_code, run("health").output.splitlines()[0]) == (
        0,
        "ok  calls: none",
    )
    said = [
        ("agent", "Hello."),
        ("caller", "Hello there."),
        ("agent", "I'll email you the invoice."),
    ]
    call = hold_call(home, said)
    follow(home.work, call.conversation)
    shown = run("health")
    assert shown.exit_code == 1
    assert shown.output.startswith("warn")
    assert "1 broken promise; `aftercall followups list --state broken`" in shown.output
    assert "email" not in shown.output


def test_the_api_tells_and_decides_the_same(home: App) -> None:
    follow(home.work, hold_call(home).conversation)
    client = make_client(home)
    page = client.get("/api/followups", params={"limit": 2}).json()
    rest = client.get("/api/followups", params={"before": page["next"]}).json()
    assert (len(page["followups"]), len(rest["followups"]), rest["next"]) == (
        2,
        1,
        None,
    )
    (held,) = client.get("/api/followups", params={"state": "held"}).json()["followups"]
    assert client.get("/api/followups", params={"state": "lost"}).status_code == 422
    assert (
        client.get(f"/api/followups/{held['id']}").json()["history"][0]["what"]
        == "held"
    )
    assert client.get("/api/followups/nothing").status_code == 404
    assert client.post(f"/api/followups/{held['id']}/retry").status_code == 409
    assert client.post(f"/api/followups/{held['id']}/approve").json()["state"] == "open"
    assert (
        client.post(f"/api/followups/{held['id']}/reject").json()["state"] == "refused"
    )
    assert client.get("/api/health").json()["status"] == "ok"
    stranger = make_stranger(home)
    assert stranger.get("/api/followups").status_code == 401
    assert stranger.post(f"/api/followups/{held['id']}/approve").status_code == 401


def test_the_event_log_is_read_at_the_command_line(home: App) -> None:
    assert run("events", "list").output == "No events yet.\n"
    call = hold_call(home)
    home.webhooks.publish()
    (sealed,) = run_json("events", "list")
    assert (sealed["type"], sealed["data"]["id"]) == ("call.sealed", call.id)
    assert sealed["id"] in run("events", "list").output
    assert run_json("events", "list", "--after", sealed["id"]) == []
    assert run("events", "resend").output == "0 to be sent again\n"
