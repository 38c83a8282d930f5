"""Tests are started from the page, run in a process of their own, and are read there."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from aftercall.app import App
from aftercall.clock import SystemClock
from aftercall.settings import Settings, providers
from api_client import csrf_of, make_client
from opened_apps import OpenApp

SLOW = "practice:slow"
EVIL = "<script>alert('x')</script>"


@pytest.fixture
def live(tmp_path: Path, open_app: OpenApp) -> App:
    tester = providers.TesterSettings(agents=f"{SLOW}, +15550100")
    return open_app(Settings(home=tmp_path / "home", tester=tester), SystemClock())


@pytest.fixture
def client(live: App) -> Iterator[TestClient]:
    with make_client(live) as client:
        yield client


def start(client: TestClient, **form: str) -> int:
    csrf = csrf_of(client.get("/tests").text)
    return client.post("/tests", data={"csrf": csrf} | form).status_code


def wait_for(client: TestClient, words: str) -> str:
    """The suite's time limit is the only one."""
    while words not in (page := client.get("/tests").text):
        time.sleep(0.1)
    return page


def test_a_run_is_started_and_its_findings_lead_to_the_second(
    client: TestClient, live: App
) -> None:
    assert start(client, agent=SLOW, scenarios="opening_hours") == 200
    assert 'hx-get="/tests/list' in client.get("/tests").text
    wait_for(client, "0 of 1 passed")
    (folder,) = (live.settings.home / "tests").glob("0*")
    run = f"/tests/{folder.name}"
    shown = client.get(run).text
    report = json.loads((folder / "report.json").read_bytes())
    (result,) = report["results"]
    finding = next(one for one in result["findings"] if one["kind"] == "slow_answer")
    call = f"{run}/calls/{result['calls'][0]['id']}"
    assert f'href="{call}#at-{finding["at_s"]}"' in shown
    assert finding["text"] in client.get(call).text
    sound = client.get(f"{call}/sound")
    assert (sound.content[:4], sound.headers["content-type"]) == (b"RIFF", "audio/wav")
    policy = client.get(f"{run}/report").headers["content-security-policy"]
    assert policy.startswith("sandbox")
    audit = live.audit.list_recent(limit=1)[0]
    assert (audit.deed, audit.subject) == ("tested", folder.name)
    later = folder.with_name("7" + folder.name[1:])
    shutil.copytree(folder, later)
    report |= {"id": later.name}
    (later / "report.json").write_text(json.dumps(report))
    page = client.get("/tests").text
    assert "Trend of practice" in page
    compared = client.get(f"/tests/compare?a={folder.name}&b={later.name}").text
    assert "opening hours" in compared
    for wrong in ("nope", "..%2F..%2Fetc", f"{folder.name}/calls/nope"):
        assert client.get(f"/tests/{wrong}").status_code == 404


def test_a_run_that_cannot_be_made_says_why(client: TestClient) -> None:
    assert start(client, agent="practice", scenarios="unheard_of") == 200
    page = wait_for(client, "could not run")
    assert "there is no scenario &#39;unheard_of&#39;" in page


BAD_FORMS = (
    {"agent": "python:os:system"},
    {"agent": "http://127.0.0.1:1"},
    {"agent": "practice", "scenarios": "/etc/passwd"},
    {"agent": "practice", "scenarios": "a.yaml"},
    {"agent": "practice", "runs": "0"},
    {"agent": "practice", "when": "never", "at": "03:00"},
    {"agent": "practice", "when": "day", "at": "25:00"},
)


def test_only_agents_of_the_settings_and_names_are_taken(
    client: TestClient, live: App
) -> None:
    for form in BAD_FORMS:
        assert start(client, **form) == 422
    assert not (live.settings.home / "tests").exists()


def test_a_schedule_is_shown_and_removed(client: TestClient) -> None:
    form = {"agent": SLOW, "scenarios": "all", "when": "monday", "at": "04:30"}
    assert start(client, **form) == 200
    page = client.get("/tests").text
    assert "every monday at 04:30" in page
    assert start(client, **form) == 422  # once is enough
    remove = page.partition('action="/tests/schedules/')[2].partition('"')[0]
    token = {"csrf": csrf_of(page)}
    gone = client.post(f"/tests/schedules/{remove}", data=token)
    assert gone.status_code == 200
    assert "every monday" not in gone.text
    assert client.post(f"/tests/schedules/{remove}", data=token).status_code == 404


def test_words_in_a_report_stay_words(client: TestClient, live: App) -> None:
    folder = live.settings.home / "tests" / "01M7F376HEJR30T00S2PT2KF9Q"
    folder.mkdir(parents=True)
    turn = {"turn": 1, "who": "agent", "start_s": 0.5, "end_s": 2.0, "text": EVIL}
    call = {
        "id": "01M7F376HEJR30T00S2PT2KF9R",
        "call": 1,
        "duration_s": 3.0,
        "outcome": "answered",
        "ended_by": EVIL,
        "recording": "recorded",
        "turns": [turn],
        "measures": {"latency_p50_s": 0.25},
    }
    finding = {
        "kind": EVIL,
        "severity": "major",
        "text": EVIL,
        "expected": EVIL,
        "at_s": 0.5,
        "call": 1,
        "turns": [1],
    }
    result = {
        "scenario": EVIL,
        "goal": EVIL,
        "run": 1,
        "verdict": "failed",
        "reason": EVIL,
        "criteria": [{"name": EVIL, "state": "missed"}],
        "findings": [finding],
        "calls": [call],
    }
    run = {
        "id": folder.name,
        "target": EVIL,
        "started_at": "2026-11-15T07:54:42Z",
        "seconds": 4.1,
        "passed": 0,
        "failed": 1,
        "runs": 1,
        "results": [result],
    }
    (folder / "report.json").write_text(json.dumps(run))
    for path in ("", f"/{folder.name}", f"/{folder.name}/calls/{call['id']}"):
        page = client.get(f"/tests{path}")
        assert page.status_code == 200
        assert EVIL not in page.text
        assert "alert(" in page.text
    assert "250 ms" in client.get(f"/tests/{folder.name}").text
    sound = client.get(f"/tests/{folder.name}/calls/{call['id']}/sound")
    assert sound.status_code == 404
