"""A real server and a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import find_chromium
from playwright.sync_api import (
    Browser,
    Page,
    StorageState,
    expect,
    sync_playwright,
)

from server_process import serving_pages

expect.set_options(timeout=20_000)  # milliseconds: a busy machine is slow, not wrong


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium here, and none could be installed (`make test` tries)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def server(server_home: Path) -> Iterator[tuple[str, str]]:
    with serving_pages(server_home) as (address, link):
        yield address, link


@pytest.fixture(scope="module")
def address(server: tuple[str, str]) -> str:
    return server[0]


@pytest.fixture(scope="module")
def login(browser: Browser, server: tuple[str, str]) -> StorageState:
    """The cookies of a browser that followed the link."""
    context = browser.new_context()
    context.new_page().goto(server[1])
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def page(browser: Browser, address: str, login: StorageState) -> Iterator[Page]:
    """A page whose console must stay clean: a refused script or style is a fault of ours."""
    complaints: list[str] = []
    context = browser.new_context(base_url=address, storage_state=login)
    page = context.new_page()
    page.on(
        "console",
        lambda message: (
            complaints.append(message.text) if message.type == "error" else None
        ),
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert complaints == []
