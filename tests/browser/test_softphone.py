"""A spoken call in a real browser: its microphone is Chromium's, which beeps once a second."""

import asyncio
from collections.abc import Iterator
from threading import Event, Thread

import pytest
from chromium import find_chromium
from playwright.sync_api import Page, expect, sync_playwright

from aftercall.lab.deepgram import DeepgramConnection, EmulatedDeepgram
from aftercall.lab.engine import reply_in_order
from aftercall.speech.sound import cached_loudness
from server_process import serving_pages

KEY = "engine-key"
LOUD = 1_000.0
BEEP = "Beep beep."


class HearingConnection(DeepgramConnection):
    """Takes the first loud sound for words."""

    has_heard = False

    async def receive_audio(self, audio: bytes) -> None:
        if not self.has_heard and cached_loudness(audio) > LOUD:
            self.has_heard = True
            await self.on_speech_started()
            await self.on_words(BEEP)


class HearingEngine(EmulatedDeepgram):
    connection_type = HearingConnection


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    """The address of an engine that answers a beep."""
    is_open, is_over, address = Event(), Event(), ""

    async def run() -> None:
        nonlocal address
        async with HearingEngine(KEY, reply_in_order("I heard you beep.")) as engine:
            address = f"ws://{engine.address}{engine.path}"
            is_open.set()
            await asyncio.to_thread(is_over.wait)

    thread = Thread(target=asyncio.run, args=(run(),))
    thread.start()
    is_open.wait()
    yield address
    is_over.set()
    thread.join()


@pytest.fixture(scope="module")
def page(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium here, and none could be installed (`make test` tries)")
    setup = {
        "AFTERCALL_ENGINE": "deepgram",
        "DEEPGRAM_API_KEY": KEY,
        "AFTERCALL_DEEPGRAM_URL": engine,
    }
    devices = "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"
    with (
        serving_pages(tmp_path_factory.mktemp("home"), **setup) as (address, link),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", *devices]
        )
        complaints: list[str] = []
        page = browser.new_context(base_url=address).new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda message: (
                complaints.append(message.text) if message.type == "error" else None
            ),
        )
        page.goto(link)
        yield page
        browser.close()
        assert complaints == []


def test_a_page_hears_the_agent_and_is_heard_and_remembers_who_calls(
    page: Page,
) -> None:
    page.goto("/phone")
    expect(page.locator("#caller")).to_have_value("web:owner")
    page.fill("#caller", "+15550171")
    page.click("#ring")
    expect(page.locator("#mute")).to_be_focused(timeout=20_000)
    # the agent's words are written as far as the page has played them: a beep cuts in
    turns = page.locator("#heard .turn")
    # whoever is quicker is first: the beep of the page or the greeting
    expect(turns.filter(has_text="Hello!")).to_have_count(1, timeout=20_000)
    expect(page.locator("#heard .caller")).to_contain_text(BEEP)
    expect(turns.last).to_contain_text("I heard you beep.", timeout=20_000)
    page.keyboard.press("5")
    page.click("#mute")
    expect(page.locator("#mute")).to_have_text("Unmute")
    page.click("#hangup")
    expect(page.get_by_role("status")).to_have_text("The call has ended.")
    expect(page.locator("#steps")).to_be_visible()
    page.get_by_text("Open the call").click()
    expect(page.locator("main")).to_contain_text("caller hung up", timeout=20_000)
    expect(page.locator(".turn.agent").last).to_contain_text("I heard you beep.")
    page.goto("/phone")
    expect(page.locator("#caller")).to_have_value("+15550171")


def test_the_browsers_own_recogniser_says_first_where_the_sound_goes(
    page: Page,
) -> None:
    page.goto("/phone")
    page.get_by_label("type").check()
    page.click("#ring")
    expect(page.locator("#heard .agent")).to_have_count(1)
    expect(page.locator("#where")).to_be_hidden()
    page.click("#listen")
    expect(page.locator("#where")).to_contain_text("Chrome to Google")
    expect(page.locator("#agree")).to_be_focused()
    expect(page.locator("#listen")).to_have_text("Speak")
