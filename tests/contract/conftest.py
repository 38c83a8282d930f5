"""What tests of streamed calls stand on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aftercall.app import App, build
from aftercall.settings import Settings
from aftercall.testing import VirtualClock


@pytest.fixture
async def rigged(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[App]:
    """An app whose time is ours."""
    app = build(Settings(home=tmp_path / "home"), clock)
    yield app
    await app.journal.close()
    app.close()
