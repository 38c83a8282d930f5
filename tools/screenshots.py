"""Pictures of the pages, from a server of their own with a month of calls in it: `make
screenshots`.

Every page at two widths, light and dark, into a folder (`--to`); those that the docs show, into
`docs/screenshots`.
"""

import argparse
import json
import random
import sys
import tempfile
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from chromium import find_chromium
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    StorageState,
    expect,
    sync_playwright,
)

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "screenshots"
sys.path.insert(0, str(ROOT / "tests"))

DANA = "+15550142"
FAULTY_AGENT = "practice:wrong_weekday"
SETTINGS = {
    "AFTERCALL_RECONNECT_WINDOW_S": "0",
    "AFTERCALL_WORK_POLICY": "unknown.message=hold,unknown.issue=hold",
    "AFTERCALL_TIMEZONE": "Europe/London",
    "AFTERCALL_TESTER_AGENTS": FAULTY_AGENT,
}
SCRIPTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "+15550199",
        (
            "My name is William Harker, but everyone calls me Bill.",
            "Could you book a table for four on Friday at seven?",
        ),
    ),
    (
        "+15550177",
        (
            "I'd like to leave a message for the owner: the delivery is late by two days.",
        ),
    ),
    (
        "+15550166",  # what may be a request
        ("My bicycle needs new brakes.", "Maybe you could tell Mark about the gate."),
    ),
    (
        "+15550123",
        ("Hello, this is Ann Reed.", "Please call the plumber, the tap drips again."),
    ),
    (
        DANA,
        (
            "Hi, it's Dana Fox from the Harbour Clinic.",
            "Please open a bug about the broken thumbnails on the booking page.",
            "I prefer to be called in the evening.",
        ),
    ),
)
LONG_TALK = (
    "Remind me to follow up with Markus on Tuesday.",
    "And note that Carl prefers to be called in the morning.",
    "My sister Ann lives in Porto, by the way.",
    "She is visiting us in December, with the two children.",
    "No, wait, the appointment is on Thursday at half past nine, not on Wednesday.",
)
ANSWERS = (
    "Of course, I have taken that down. Is there anything else I can do for you?",
    "I will pass that on to the owner today.",
    "Thank you, I have noted it.",
)
LIVE = (
    "Good morning, it's Dana again.",
    "Has anybody looked at the thumbnails yet?",
)
PAGES = {
    "today": "/",
    "today-month": "/?span=month",
    "calls": "/calls",
    "call": "{call}",
    "people": "/people",
    "person": f"/people/{DANA.replace('+', '%2B')}",
    "memory": "/memory",
    "fact": "{fact}",
    "work": "/followups",
    "request": "{request}",
    "unclear": "/followups/unclear",
    "search": "/search?q=thumbnails",
    "tests": "/tests",
    "test-run": "{run}",
    "test-call": "{test_call}",
    "test-report": "{run}/report",
    "test-comparison": "/tests/compare?{both_runs}",
    "phone": "/phone",
    "settings": "/settings",
    "docs": "/docs",
    "error": "/nothing/here",
    "login": "/login",
}
IN_DOCS = {
    ("today", 1280, "light"): "today",
    ("today", 1280, "dark"): "today-dark",
    ("call", 1280, "light"): "call",
    ("calls", 1280, "light"): "calls",
    ("calls", 390, "light"): "calls-on-a-phone",
    ("person", 1280, "light"): "person",
    ("memory", 1280, "light"): "memory",
    ("work", 1280, "light"): "work",
    ("phone", 1280, "light"): "phone",
    ("settings", 1280, "light"): "settings",
}


def main() -> None:
    from aftercall.settings import Settings
    from api_client import bearer
    from server_process import serving_pages

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--to", type=Path, default=Path(tempfile.gettempdir()) / "shots"
    )
    out: Path = parser.parse_args().to
    path = find_chromium()
    if path is None:
        sys.exit("no Chromium here; install one and try again")
    out.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving_pages(Path(folder), **SETTINGS) as (address, link),
        sync_playwright() as playwright,
    ):
        chromium = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        browser = chromium.new_context()
        browser.new_page().goto(link)
        token = bearer(Settings(home=Path(folder)))
        _take(chromium, browser, address, "first-day", out)
        call = _fill(address, token)
        _settle(browser, address)
        _add_extras(Path(folder), call)
        on_the_phone = _ring(browser, address)
        places = {
            "call": f"/calls/{call}",
            "fact": _find_first(browser, address, "/memory", ".facts a"),
            "request": _find_first(browser, address, "/followups", ".item b"),
            **_test(browser, address),
        }
        for name, where in PAGES.items():
            url = address + where.format_map(places)
            _take(chromium, browser, url, name, out)
        on_the_phone.close()
        chromium.close()
    print(f"{out}: {len(PAGES) * 4 + 4} pictures")


def _take(
    chromium: Browser, browser: BrowserContext, url: str, name: str, out: Path
) -> None:
    """One page at two widths, light and dark."""
    login = browser.storage_state()
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            page = _picture(chromium, login, url, width, scheme)
            file = out / f"{name}-{width}-{scheme}.png"
            if shown := IN_DOCS.get((name, width, scheme)):
                page.screenshot(path=DOCS / f"{shown}.png")
            # rows out of sight are not painted, so the whole page has to be in sight
            height = page.evaluate("document.documentElement.scrollHeight")
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(200)
            page.screenshot(path=file, full_page=True)
            page.context.close()


def _find_first(browser: BrowserContext, address: str, where: str, what: str) -> str:
    """The address of the first thing in a list."""
    page = browser.new_page()
    page.goto(address + where)
    link = page.locator(what).first.evaluate("one => one.closest('a').pathname")
    page.close()
    return str(link)


def _fill(address: str, token: dict[str, str]) -> str:
    """A month of calls; the id of the last one, a long talk with two sides."""
    rng = random.Random(7)  # noqa: S311 - the same calls each time
    now = datetime.now(UTC)
    for number in range(60):
        caller, lines = SCRIPTS[number % len(SCRIPTS)]
        days = (number * 29) // 60
        at = now - timedelta(days=29 - days, hours=rng.randint(0, 9), minutes=30)
        _hand_in(address, token, f"call-{number}", caller, lines, at, rng)
    at = now - timedelta(minutes=25)
    talk = tuple(LONG_TALK[number % len(LONG_TALK)] for number in range(30))
    return _hand_in(address, token, "long", DANA, talk, at, rng)


def _hand_in(
    address: str,
    token: dict[str, str],
    sid: str,
    caller: str,
    lines: tuple[str, ...],
    at: datetime,
    rng: random.Random,
) -> str:
    turns: list[dict[str, Any]] = []
    clock = at
    for number, line in enumerate(lines):
        turns.append({"speaker": "caller", "text": line, "at": clock.isoformat()})
        delay = int(rng.lognormvariate(6.6, 0.5))
        clock += timedelta(milliseconds=60 * len(line) + delay)
        answer = ANSWERS[number % len(ANSWERS)]
        turns.append(
            {"speaker": "agent", "text": answer, "at": clock.isoformat()}
            | {"delay_ms": delay}
        )
        clock += timedelta(milliseconds=60 * len(answer) + 500)
    call: dict[str, Any] = {
        "source": "twilio",
        "sid": sid,
        "caller": caller,
        "started_at": at.isoformat(),
        "ended_at": clock.isoformat(),
        "end_reason": "caller_hung_up",
        "turns": turns,
    }
    if sid == "long":
        cut = turns[5]
        whole, cut["text"] = cut["text"], "Thank you, I have"
        call["events"] = [
            {
                "kind": "barge_in",
                "at": turns[6]["at"],
                "data": {"said": whole, "heard": cut["text"]},
            },
            {
                "kind": "tool.used",
                "at": turns[8]["at"],
                "data": {"tool": "search_memory", "ms": 41},
            },
        ]
    request = urllib.request.Request(  # noqa: S310 - our own server
        f"{address}/api/calls",
        json.dumps(call).encode(),
        token | {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer_:  # noqa: S310
        return str(json.load(answer_)["id"])


def _add_extras(home: Path, call: str) -> None:
    """What needs a carrier or a paid model: a recording of the long talk, and costs."""
    from sqlalchemy import update

    from aftercall.db.connect import Database
    from aftercall.db.tables import steps
    from aftercall.journal.recording_files import RecordingStore, make_file_name
    from aftercall.journal.store import CallStore
    from aftercall.speech.sound import write_wav

    database = Database(f"sqlite:///{home / 'aftercall.db'}")
    row = CallStore(database).get(call)
    ended_at = row.ended_at or row.live.started_at
    seconds = int((ended_at - row.live.started_at).total_seconds())
    rng = random.Random(3)  # noqa: S311 - noise
    sides = [bytearray(), bytearray()]
    for second in range(seconds):
        for number, side in enumerate(sides):
            is_heard = (second // 4) % 2 == number and rng.random() < 0.85
            loud = rng.randint(155, 190) if is_heard else 255
            side += bytes(
                [max(128, min(255, loud + rng.randint(-20, 20))) for _ in range(100)]
                * 80
            )
    now = datetime.now(UTC)
    store = RecordingStore(database)
    recording = store.register(call, "twilio", "RE1", None, "here", now)
    file = home / "recordings" / make_file_name(call, recording.id)
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(write_wav(bytes(sides[0]), bytes(sides[1])))
    store.finish(
        recording.id,
        path=str(file.relative_to(home)),
        sha256="0" * 64,
        size=file.stat().st_size,
        now=now,
        transcript="none",
    )
    with database.write() as connection:
        for name, reader, cost in (
            ("facts", "openai:gpt-5-mini", 0.0021),
            ("summary", "anthropic:claude-haiku", 0.0009),
        ):
            paid = update(steps).where(steps.c.name == name)
            connection.execute(paid.values(reader=reader, cost=cost))
    database.close()


def _ring(browser: BrowserContext, address: str) -> Page:
    """A call that goes on while the pictures are taken."""
    page = browser.new_page()
    page.goto(f"{address}/phone")
    page.fill("#caller", DANA)
    page.click("#ring")
    for count, line in enumerate(LIVE, 1):
        expect(page.locator("#heard .agent")).to_have_count(count)
        page.fill("#line", line)
        page.keyboard.press("Enter")
    expect(page.locator("#heard .agent")).to_have_count(len(LIVE) + 1)
    return page


def _test(browser: BrowserContext, address: str) -> dict[str, str]:
    """Two runs of a good agent and one of an agent at fault; where the last one is shown."""
    page = browser.new_page()
    for count, agent in enumerate(("practice", "practice", FAULTY_AGENT), 1):
        page.goto(f"{address}/tests")
        page.select_option("[name=agent]", agent)
        page.get_by_role("button", name="Run", exact=True).click()
        over = page.locator("#runs a.row")
        expect(over).to_have_count(count, timeout=180_000)
    links = over.evaluate_all("rows => rows.map(row => row.pathname)")
    page.goto(address + links[0])
    call = page.locator(".findings a").first.evaluate("one => one.pathname")
    page.close()
    first, second = (link.rpartition("/")[2] for link in (links[1], links[0]))
    return {
        "run": links[0],
        "test_call": call,
        "both_runs": f"a={first}&b={second}",
    }


def _settle(browser: BrowserContext, address: str) -> None:
    """Until every call was worked on."""
    page = browser.new_page()
    page.goto(address)
    while (
        page.locator(".lines .dot.working").count()
        or not page.get_by_role("heading", name="To decide").count()
    ):
        page.wait_for_timeout(500)
    page.wait_for_timeout(3_000)
    page.close()


def _picture(
    chromium: Browser, login: StorageState, url: str, width: int, scheme: str
) -> Page:
    context = chromium.new_context(
        storage_state=login,
        viewport={"width": width, "height": 860},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    page: Page = context.new_page()
    page.goto(url)
    if page.locator("[hx-get*=waveform], svg.wave").count():
        page.wait_for_selector("svg.wave", state="attached")
    page.wait_for_timeout(400)  # fonts settle, charts are drawn
    return page


if __name__ == "__main__":
    main()
