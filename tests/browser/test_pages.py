"""The pages as a person uses them, in a real browser."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, StorageState, expect

from aftercall.db.connect import Database
from aftercall.encryption import load_api_token
from aftercall.journal.recording_files import (
    RecordingStore,
    hash_file,
    make_file_name,
)
from aftercall.settings import Settings
from api_client import bearer
from server_process import serving, serving_pages

EVIL = (
    "Please file a note about <script>document.title='owned'</script>"
    "<img src=x onerror=alert(1)>."
)


def ring(page: Page, caller: str, *lines: str) -> None:
    page.goto("/phone")
    page.fill("#caller", caller)
    page.click("#ring")
    expect(page.locator("#heard .agent")).to_have_count(1)
    for number, line in enumerate(lines, 2):
        page.fill("#line", line)
        page.keyboard.press("Enter")
        expect(page.locator("#heard .agent")).to_have_count(number)


def hang_up(page: Page) -> None:
    page.click("#hangup")
    expect(page.get_by_role("status")).to_contain_text("has ended")


def test_a_call_from_the_page_is_answered_kept_and_worked_on(page: Page) -> None:
    ring(
        page, "+15550142", "Hi, this is Dana Fox.", "Please call the plumber tomorrow."
    )
    hang_up(page)
    summary = page.locator("#steps li", has_text="summary")
    expect(summary).to_contain_text("done", timeout=20_000)
    page.get_by_text("Open the call").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Dana Fox")
    expect(page.locator(".turn.caller")).to_have_count(2)


def test_what_is_spoken_appears_on_a_page_that_looks_on(
    page: Page, browser: Browser, address: str, login: StorageState
) -> None:
    page.goto("/")
    caller = browser.new_context(base_url=address, storage_state=login).new_page()
    ring(caller, "+15550143", "Good morning, here is the canary.")
    expect(page.locator(".card.live")).to_contain_text(
        "Good morning, here is the canary."
    )
    page.locator(".card.live a").first.click()
    caller.fill("#line", "And a second thing.")
    caller.keyboard.press("Enter")
    expect(page.locator(".turns")).to_contain_text("And a second thing.")
    hang_up(caller)
    expect(page.locator("main")).to_contain_text("caller hung up")
    caller.context.close()


def test_figures_and_lists_of_an_open_front_page_change_by_themselves(
    page: Page, browser: Browser, address: str, login: StorageState
) -> None:
    caller = browser.new_context(base_url=address, storage_state=login).new_page()
    ring(caller, "+15550160", "Hello.")
    hang_up(caller)
    page.goto("/?span=day")
    calls = page.locator("figure", has_text="Calls").locator("figcaption b").first
    before = int(calls.inner_text())
    ring(caller, "+15550161", "Hello, this is Nora Lind.")
    hang_up(caller)
    expect(calls).to_have_text(str(before + 1), timeout=20_000)
    expect(page.locator(".lines li").first).to_contain_text("15550161")
    expect(page.locator("figure .uplot").first).to_be_visible()
    caller.context.close()


def test_a_call_is_read_with_the_keyboard_and_fills_itself(page: Page) -> None:
    ring(page, "+15550162", "Hello.", "Please call the plumber tomorrow.")
    hang_up(page)
    page.get_by_text("Open the call").click()
    expect(page.locator(".turn.caller").first).to_be_visible()
    page.wait_for_load_state()  # the keys work when the scripts have run
    for _ in range(2):
        page.keyboard.press("j")
    expect(page.locator(".turn.now")).to_have_attribute("id", "turn-2")
    page.keyboard.press("k")
    expect(page.locator(".turn.now")).to_be_focused()
    expect(page.locator(".turn.now")).to_have_attribute("id", "turn-1")
    expect(page.locator("#summary-title")).to_be_visible(timeout=20_000)


def hand_in(address: str, home: Path, caller: str, days_ago: int, *lines: str) -> str:
    """A call of some days ago, handed in; its id."""
    at = datetime.now(UTC) - timedelta(days=days_ago, minutes=10)
    turns = []
    for number, line in enumerate(lines):
        said_at = (at + timedelta(seconds=2 * number)).isoformat()
        turns.append({"speaker": "caller", "text": line, "at": said_at})
        turns.append({"speaker": "agent", "text": "I have noted it.", "at": said_at})
    ended_at = at + timedelta(seconds=2 * len(lines))
    call = {
        "source": "vapi",
        "sid": f"{caller[1:]}-{days_ago}",
        "caller": caller,
        "started_at": at.isoformat(),
        "ended_at": ended_at.isoformat(),
        "end_reason": "caller_hung_up",
        "turns": turns,
    }
    token = bearer(Settings(home=home)) | {"Content-Type": "application/json"}
    answer = httpx2.post(
        f"{address}/api/calls", content=json.dumps(call), headers=token
    )
    return str(answer.json()["id"])


def add_recording(home: Path, call_id: str, sound: bytes) -> None:
    database = Database(f"sqlite:///{home / 'aftercall.db'}")
    store, now = RecordingStore(database), datetime.now(UTC)
    made = store.register(call_id, "vapi", call_id, None, "here", now)
    path = home / "recordings" / make_file_name(call_id, made.id)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(sound)
    store.finish(
        made.id,
        path=str(path.relative_to(home)),
        sha256=hash_file(path),
        size=len(sound),
        now=now,
        transcript="none",
    )
    database.close()


def test_an_mp3_is_drawn_with_both_sides_and_played(
    page: Page, address: str, server_home: Path
) -> None:
    sound = Path(__file__).with_name("two_sides.mp3").read_bytes()
    call_id = hand_in(address, server_home, "+15550181", 0, "Hello.", "Goodbye.")
    add_recording(server_home, call_id, sound)
    page.goto(f"/calls/{call_id}")
    expect(page.locator("svg.wave path")).to_have_count(2)
    # the caller is loud in the first of three seconds, the agent in the last
    loud = page.locator("svg.wave path").evaluate_all(
        """paths => paths.map((path, side) => {
            const points = path.getAttribute("d").slice(1, -1).split("L")
                .map((point) => point.split(" ").map(Number));
            const upper = points.slice(0, points.length / 2);
            const middle = [16, 48][side];
            return [0.5, 2.5].map((second) => Math.max(...upper
                .filter(([x]) => Math.abs(x - second) < 0.2).map(([, y]) => middle - y)));
        })"""
    )
    (caller_first, caller_last), (agent_first, agent_last) = loud
    assert caller_first > 3 > caller_last
    assert agent_last > 3 > agent_first
    page.locator(".turn.caller").first.click()
    page.locator("audio").evaluate(
        """audio => new Promise((done) => {
            if (audio.currentTime > 0) done();
            else audio.addEventListener("timeupdate", done, { once: true });
        }).then(() => null)"""
    )
    kind = page.request.get(str(page.locator("audio").get_attribute("src")))
    assert kind.headers["content-type"] == "audio/mpeg"


@pytest.mark.parametrize("hand", ["keyboard", "mouse"])
def test_memory_shows_what_was_believed_on_the_day_of_the_slider(
    page: Page, address: str, server_home: Path, hand: str
) -> None:
    caller = "+15550182" if hand == "keyboard" else "+15550183"
    old, new = (
        "I prefer to be called in the evening.",
        "My sister Ann lives in Porto, by the way.",
    )
    name = "Hi, it's Dana Fox from the Harbour Clinic."
    hand_in(address, server_home, caller, 20, name, old)
    hand_in(address, server_home, caller, 0, name, new)
    own = f"/memory?caller=%2B{caller[1:]}"
    page.goto(own)
    evening = page.locator(".facts li", has_text="called in the evening")
    porto = page.locator(".facts li", has_text="Porto")
    for _ in range(100):  # until both calls are read
        if evening.count() and porto.count():
            break
        page.wait_for_timeout(200)
        page.goto(own)
    expect(evening).to_have_count(1)
    expect(porto).to_have_count(1)
    slider = page.get_by_role("slider", name="Day")
    if hand == "keyboard":
        slider.focus()
        for _ in range(3):
            page.keyboard.press("ArrowLeft")
        expect(slider).to_be_focused()
        day = datetime.now(UTC) - timedelta(days=3)
        expect(page.locator("output")).to_have_text(day.date().isoformat())
        assert slider.get_attribute("aria-valuetext") == day.date().isoformat()
    else:
        box = slider.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.up()
    expect(porto).to_have_count(0)
    expect(evening).to_have_count(1)
    assert "as_of=20" in page.url
    page.reload()
    expect(porto).to_have_count(0)
    slider.focus()
    page.keyboard.press("End")
    expect(porto).to_have_count(1)
    expect(page.locator("output")).to_have_text("now")


def test_words_from_the_phone_stay_words(page: Page) -> None:
    ring(page, "+15550144", EVIL)
    hang_up(page)
    page.get_by_text("Open the call").click()
    expect(page.locator(".turn.caller")).to_contain_text("<script>")
    assert page.title() != "owned"
    assert page.locator("main img").count() == 0
    page.goto("/calls")
    expect(page.locator(".lines")).to_contain_text("15550144")


def test_a_profile_is_edited_and_a_change_from_elsewhere_is_not_lost(
    page: Page, browser: Browser, address: str, login: StorageState
) -> None:
    ring(page, "+15550145", "Hello, this is Ann Reed.")
    hang_up(page)
    expect(page.locator("#steps li", has_text="profile")).to_contain_text(
        "done", timeout=20_000
    )
    page.goto("/people/%2B15550145")
    other = browser.new_context(base_url=address, storage_state=login).new_page()
    other.goto("/people/%2B15550145")
    page.fill("#text", "- **Name:** Ann Reed-Wong\n")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ann Reed-Wong")
    other.fill("#text", "- **Name:** Overwritten\n")
    other.get_by_role("button", name="Save").click()
    expect(other.get_by_role("alert")).to_contain_text("has changed in the meantime")
    expect(other.locator("main")).to_contain_text("Ann Reed-Wong")
    other.context.close()


def test_a_secret_is_revealed_on_demand_and_a_caller_is_erased(page: Page) -> None:
    ring(
        page,
        "+15550150",
        "Hello, this is Ada Quill.",
        "My PIN is 4471, please keep it safe.",
        "And I prefer to be called in the evening.",
    )
    hang_up(page)
    expect(page.locator("#steps li", has_text="facts")).to_contain_text(
        "done", timeout=20_000
    )
    page.get_by_text("Open the call").click()
    expect(page.locator(".turns")).not_to_contain_text("4471")
    page.locator(".facts a", has_text="a secret").first.click()
    expect(page.locator("main")).not_to_contain_text("4471")
    page.get_by_role("button", name="Reveal this secret").click()
    expect(page.locator("main")).to_contain_text("4471")
    page.goto("/people/%2B15550150")
    page.get_by_text("Erase everything").click()
    page.fill("#typed", "+15550150")
    page.get_by_role("button", name="Erase", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Erased")
    expect(page.locator("main")).to_contain_text("nothing is left")
    page.goto("/people")
    expect(page.locator("main")).not_to_contain_text("15550150")


def test_a_held_request_is_approved_from_the_first_page(
    browser: Browser, tmp_path: Path
) -> None:
    with serving_pages(
        tmp_path, AFTERCALL_RECONNECT_WINDOW_S="0", AFTERCALL_WORK_POLICY="unknown=hold"
    ) as (address, link):
        context = browser.new_context(base_url=address)
        page = context.new_page()
        page.goto(link)
        ring(page, "+15550151", "Please call the plumber.")
        hang_up(page)
        waiting = page.get_by_role("button", name="Approve: Call the plumber")
        while not waiting.count():  # it waits once the reconnect window has passed
            page.goto("/")
        waiting.click()
        page.goto("/followups?state=noted")
        while not page.locator(".item").count():
            page.reload()
        expect(page.locator("main")).to_contain_text(
            "only written down: a person must do it"
        )
        context.close()
    assert list((tmp_path / "workspace" / "tasks").glob("call-the-plumber*.md"))


def test_a_call_can_be_made_with_the_keyboard_alone(page: Page) -> None:
    page.goto("/phone")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("+15550146")
    page.keyboard.press("Enter")
    expect(page.locator("#line")).to_be_focused()
    page.keyboard.type("Please note that the tap drips.")
    page.keyboard.press("Enter")
    expect(page.locator("#heard .agent")).to_have_count(2)
    hang_up(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_barrier(
    browser: Browser, address: str, login: StorageState, scheme: str
) -> None:
    context = browser.new_context(
        base_url=address,
        storage_state=login,
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    page = context.new_page()
    ring(page, "+15550147", "Please call me back.")
    hang_up(page)
    page.get_by_text("Open the call").click()
    page.wait_for_url("**/calls/*")
    found = {}
    for path in (
        page.url,
        "/",
        "/calls",
        "/people",
        "/people/%2B15550147",
        "/memory",
        "/followups",
        "/tests",
        "/phone",
        "/settings",
        "/docs",
        "/login",
    ):
        page.goto(path)
        worst = [
            item
            for item in Axe().run(page).response["violations"]
            if item["impact"] in ("serious", "critical")
        ]
        if worst:
            found[path] = [
                (item["id"], [node["html"][:120] for node in item["nodes"]][:3])
                for item in worst
            ]
    context.close()
    assert found == {}


def test_dark_pages_are_dark(
    browser: Browser, address: str, login: StorageState
) -> None:
    context = browser.new_context(
        base_url=address, storage_state=login, color_scheme="dark"
    )
    page = context.new_page()
    page.goto("/")
    red, *_ = page.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    )
    context.close()
    assert red < 60


def test_pages_read_well_without_scripts(
    browser: Browser, address: str, login: StorageState
) -> None:
    context = browser.new_context(
        base_url=address, storage_state=login, java_script_enabled=False
    )
    page = context.new_page()
    for path, heading in (
        ("/", "Today"),
        ("/calls", "Calls"),
        ("/people", "People"),
        ("/memory", "Memory"),
        ("/followups", "Work"),
        ("/settings", "Settings"),
        ("/docs", "API"),
    ):
        page.goto(path)
        expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    context.close()


def test_with_a_token_nothing_is_seen_before_the_login(
    browser: Browser, tmp_path: Path
) -> None:
    with serving(tmp_path, AFTERCALL_API_TOKEN="s3cret-token") as address:
        context = browser.new_context(base_url=address)
        page = context.new_page()
        page.goto("/calls")
        expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
        page.fill("#secret", "wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("neither")
        page.fill("#secret", "s3cret-token")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Calls")
        ring(page, "+15550148", "Hello.")
        hang_up(page)
        page.get_by_role("button", name="Log out").click()
        page.goto("/")
        expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
        context.close()


def test_the_printed_link_logs_in_once_and_a_login_ends_everywhere(
    browser: Browser, tmp_path: Path
) -> None:
    with serving_pages(tmp_path) as (address, link):
        first, second = (browser.new_context(base_url=address) for _ in range(2))
        page, late = first.new_page(), second.new_page()
        page.goto(link)
        expect(page.get_by_role("heading", level=1)).to_have_text("Today")
        late.goto(link)
        expect(late.get_by_role("alert")).to_contain_text("was used")
        page.goto("/settings")
        page.get_by_role("button", name="Log out everywhere").click()
        page.goto("/")
        expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
        first.close()
        second.close()


def test_the_api_page_tries_a_route_with_the_token_that_is_typed(
    page: Page, server_home: Path
) -> None:
    page.goto("/docs")
    page.locator("#get_statistics > summary").click()
    form = page.locator("#get_statistics form")
    form.locator("input[name=days]").fill("7")
    page.fill("#token", load_api_token(Settings(home=server_home)).get_secret_value())
    form.get_by_role("button", name="Try it").click()
    expect(form.locator("output")).to_contain_text("GET /api/statistics?days=7")
    expect(form.locator("output")).to_contain_text('"by_day"')
    page.locator("#add_pin > summary").click()
    posted = page.locator("#add_pin form")
    posted.locator("textarea").fill('{"caller": "+15550142", "topic": "the roof"}')
    posted.get_by_role("button", name="Try it").click()
    expect(posted.locator("output")).to_contain_text('"title": "the roof"')
