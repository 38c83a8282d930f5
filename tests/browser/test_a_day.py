"""A day at the pages: a call comes in, is listened to, ends, is read, worked on and forgotten."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import httpx2
import pytest
from chromium import find_chromium
from playwright.async_api import Page, async_playwright, expect

from aftercall.lab.deepgram import EmulatedDeepgram
from aftercall.lab.engine import reply_in_order
from aftercall.lab.twilio import EmulatedTwilio
from crash.killable_server import MortalServer
from voice_server import KEY, TOKEN

API_TOKEN = "the token of one day"
CALLER = "+15550142"
SAID = (
    "Hello, this is Dana Fox, and my sister lives in Port.",
    "Please call the plumber tomorrow.",
    "Please order new paper.",
    "I need the donkey shod.",
)
WRITES = 200


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium here, and none could be installed (`make test` tries)")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--autoplay-policy=no-user-gesture-required"],
        )
        page = await browser.new_page()
        page.set_default_timeout(30_000)
        expect.set_options(timeout=30_000)
        yield page
        await browser.close()


async def test_the_pages_live_a_day_and_nothing_is_missing_after_it(
    tmp_path: Path, page: Page
) -> None:
    async with (
        EmulatedDeepgram(KEY, reply_in_order("Taken down.")) as engine,
        EmulatedTwilio(TOKEN, speed=4.0) as twilio,
    ):
        server = MortalServer(
            tmp_path,
            AFTERCALL_API_TOKEN=API_TOKEN,
            AFTERCALL_ENGINE="deepgram",
            AFTERCALL_DEEPGRAM_URL=engine.url,
            AFTERCALL_RECONNECT_WINDOW_S="0",
            AFTERCALL_BRIDGE_SILENCE_PROMPT_S="600",
            AFTERCALL_BRIDGE_SILENCE_GOODBYE_S="900",
            AFTERCALL_WORK_POLICY="unknown=hold",
            AFTERCALL_WORK_UNDO_S="5",
            DEEPGRAM_API_KEY=KEY,
            TWILIO_AUTH_TOKEN=TOKEN,
        )
        await server.start()
        try:
            await log_in(page, server.address)
            await take_a_call(page, server.address, twilio)
            await work(page, server.address)
            await correct_and_search(page, server.address)
            await expect_done(page, server.address)
            await export_and_erase(page, server.address)
            written = await write_calls(server.address)
            await server.kill()
            await server.start()
            assert await list_calls(server.address) == written
            await page.goto(server.address)
            calls = page.locator("figure", has_text="Calls").first
            await expect(calls.locator("figcaption b")).to_have_text(str(WRITES))
            await server.kill()  # it would first read all that was written
        finally:
            await server.stop()


async def log_in(page: Page, address: str) -> None:
    await page.goto(f"{address}/login")
    await page.fill("#secret", API_TOKEN)
    await page.keyboard.press("Enter")
    first = page.get_by_role("region", name="Until the first real call")
    await expect(first).to_be_visible()


async def take_a_call(page: Page, address: str, twilio: EmulatedTwilio) -> None:
    """It appears on the open front page, is listened to, and fills its own page when it ends."""
    ring = await twilio.ring(f"{address}/twilio/voice", caller=CALLER)
    assert ring.phone is not None, ring.fault
    async with page.expect_websocket() as listening:
        await page.get_by_role("button", name="Listen").click()
    socket = await listening.value
    async with socket.expect_event("framereceived"):
        for line in SAID:
            ring.phone.queue_text(line)
            await expect(page.locator(".card.live")).to_contain_text(line)
    first = page.get_by_role("region", name="Until the first real call")
    await page.locator(".card.live a").first.click()
    await expect(page.locator(".turn.caller")).to_have_count(len(SAID))
    await ring.phone.hang_up()
    await expect(page.locator("#summary-title")).to_be_visible()
    await expect(page.locator("#asked-title")).to_be_visible()
    await page.goto(address)
    await expect(first).to_have_count(0)


async def work(page: Page, address: str) -> None:
    """An unclear request is answered, two are approved at once, one of them is undone."""
    await page.goto(f"{address}/followups/unclear")
    await expect(page.locator(".turn.now")).to_contain_text("donkey")
    await page.keyboard.press("y")
    await expect(page.locator("main")).to_contain_text("The reader was sure")
    await page.goto(f"{address}/followups?state=held")
    for title in ("plumber", "paper"):
        await page.locator(".item", has_text=title).get_by_role("checkbox").check()
    await page.keyboard.press("a")
    await expect(page.get_by_role("status")).to_contain_text("Approved: 2.")
    await page.get_by_role("button", name="Undo: Order new paper").click()
    held = page.locator(".item.pick", has_text="paper")
    await expect(held.locator(".dot.held")).to_be_attached()


async def correct_and_search(page: Page, address: str) -> None:
    await page.goto(f"{address}/memory")
    await page.locator(".facts a", has_text="Port").click()
    await page.fill("#new-fact", "My sister lives in Porto")
    await page.get_by_role("button", name="Correct: What it should say").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Porto")
    await page.locator("body").press("/")
    await page.keyboard.type("donkey")
    await page.keyboard.press("Enter")
    await expect(page.locator("mark").first).to_have_text("donkey")
    await page.locator(".hits a", has_text="the call").first.click()
    await expect(page.locator(".turn.now")).to_contain_text("donkey")


async def expect_done(page: Page, address: str) -> None:
    await page.goto(f"{address}/followups?state=noted")
    done = page.locator(".item", has_text="plumber")
    while not await done.count():
        await page.reload()
    await expect(done).to_contain_text("only written down: a person must do it")
    await page.get_by_role("button", name="Done: Call the plumber").click()
    await expect(page.get_by_role("status")).to_contain_text("Marked as done")
    await page.goto(f"{address}/followups?state=done")
    await expect(done.locator(".dot.done")).to_be_attached()
    await expect(page.locator("main")).not_to_contain_text("paper")


async def export_and_erase(page: Page, address: str) -> None:
    await page.goto(f"{address}/people/{CALLER.replace('+', '%2B')}")
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Export everything").click()
    exported = await (await download.value).path()
    assert await asyncio.to_thread(exported.read_bytes)
    await page.get_by_text("Erase everything").click()
    await page.fill("#typed", CALLER)
    await page.get_by_role("button", name="Erase", exact=True).click()
    await expect(page.locator("main")).to_contain_text("nothing is left")
    await page.goto(f"{address}/search?q=donkey")
    await expect(page.locator("main")).to_contain_text("Nothing matches")


def make_api(address: str) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {API_TOKEN}"}
    return httpx2.AsyncClient(
        base_url=address, headers=headers, trust_env=False, timeout=60
    )


async def write_calls(address: str) -> set[str]:
    """The ids of the calls that the server has confirmed."""
    now = datetime.now().astimezone().isoformat()
    async with make_api(address) as api:

        async def write(number: int) -> str:
            call = {
                "source": "twilio",
                "sid": f"write-{number}",
                "caller": "+15550188",
                "started_at": now,
                "ended_at": now,
                "turns": [{"speaker": "agent", "text": "Hello?", "at": now}],
            }
            answer = await api.post("/api/calls", json=call)
            return str(answer.raise_for_status().json()["id"])

        return set(await asyncio.gather(*(write(number) for number in range(WRITES))))


async def list_calls(address: str) -> set[str]:
    found: set[str] = set()
    before: dict[str, str] = {}
    async with make_api(address) as api:
        while True:
            answer = await api.get("/api/calls", params={"limit": "100", **before})
            listed = answer.raise_for_status().json()
            found |= {call["id"] for call in listed["calls"]}
            if not listed.get("next"):
                return found
            before = {"before": listed["next"]}
