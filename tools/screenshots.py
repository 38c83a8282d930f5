"""Pictures of the pages for the docs, from a server of their own with a few calls in it: `make
screenshots`.
"""

import json
import sys
import tempfile
import urllib.request
from pathlib import Path

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
OUT = ROOT / "docs" / "screenshots"
sys.path.insert(0, str(ROOT / "tests"))

DANA = "+15550142"
SETTINGS = {
    "AFTERCALL_RECONNECT_WINDOW_S": "0",
    "AFTERCALL_WORK_POLICY": "unknown.message=hold,unknown.issue=hold",
}
CALLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        DANA,
        (
            "Hi, it's Dana Fox from the Harbour Clinic.",
            "Please open a bug about the broken thumbnails on the booking page.",
            "I prefer to be called in the evening.",
        ),
    ),
    (
        "+15550199",
        (
            "Could you book a table for four on Friday at seven?",
            "My name is William Harker, but everyone calls me Bill.",
        ),
    ),
    (
        DANA,
        (
            "Remind me to follow up with Markus on Tuesday.",
            "And note that Carl prefers to be called in the morning.",
            "My sister Ann lives in Porto, by the way.",
        ),
    ),
    (
        "+15550177",
        (
            "I'd like to leave a message for the owner: the delivery is late by two days.",
        ),
    ),
)
PAGES: tuple[tuple[str, str, int, str], ...] = (
    ("today", "/", 1280, "light"),
    ("today-dark", "/", 1280, "dark"),
    ("calls", "/calls", 1280, "light"),
    ("call", "{call}", 1280, "light"),
    ("person", f"/people/{DANA.replace('+', '%2B')}", 1280, "light"),
    ("memory", "/memory", 1280, "light"),
    ("work", "/followups", 1280, "light"),
    ("phone", "/phone", 1280, "light"),
    ("settings", "/settings", 1280, "light"),
    ("calls-on-a-phone", "/calls", 390, "light"),
)


def main() -> None:
    from aftercall.settings import Settings
    from api_client import bearer
    from server_process import serving_pages

    path = find_chromium()
    if path is None:
        sys.exit("no Chromium here; install one and try again")
    OUT.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as home,
        serving_pages(Path(home), **SETTINGS) as (address, link),
        sync_playwright() as playwright,
    ):
        chromium = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        browser = chromium.new_context()
        browser.new_page().goto(link)
        for caller, lines in CALLS:
            _ring(browser, address, caller, lines)
        _settle(browser, address)
        call = _newest(address, DANA, bearer(Settings(home=Path(home))))
        for name, where, width, scheme in PAGES:
            _picture(
                chromium,
                browser.storage_state(),
                address + where.format(call=f"/calls/{call}"),
                OUT / f"{name}.png",
                width,
                scheme,
            )
        chromium.close()


def _ring(
    browser: BrowserContext, address: str, caller: str, lines: tuple[str, ...]
) -> None:
    page = browser.new_page()
    page.goto(f"{address}/phone")
    page.fill("#caller", caller)
    page.click("#ring")
    for count, line in enumerate(lines, 1):
        expect(page.locator("#heard .agent")).to_have_count(count)
        page.fill("#line", line)
        page.keyboard.press("Enter")
    expect(page.locator("#heard .agent")).to_have_count(len(lines) + 1)
    page.click("#hangup")
    expect(page.locator("#steps")).to_contain_text("done", timeout=20_000)
    expect(page.locator("#steps[hx-trigger]")).to_have_count(0, timeout=20_000)
    page.close()


def _settle(browser: BrowserContext, address: str) -> None:
    """Until what was asked for is done or waits."""
    page = browser.new_page()
    page.goto(f"{address}/followups")
    while page.locator(".item").count() < len(CALLS):
        page.reload()
    page.close()


def _newest(address: str, caller: str, token: dict[str, str]) -> str:
    number = caller.replace("+", "%2B")
    request = urllib.request.Request(  # noqa: S310 - our own server
        f"{address}/api/calls?limit=1&caller={number}", headers=token
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        return str(json.load(answer)["calls"][0]["id"])


def _picture(
    chromium: Browser,
    login: StorageState,
    url: str,
    file: Path,
    width: int,
    scheme: str,
) -> None:
    context = chromium.new_context(
        storage_state=login,
        viewport={"width": width, "height": 860},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    page: Page = context.new_page()
    page.goto(url)
    page.wait_for_timeout(300)  # fonts settle
    page.screenshot(path=file)
    context.close()


if __name__ == "__main__":
    main()
