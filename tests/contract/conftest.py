"""What tests of streamed calls stand on."""

from pathlib import Path

import pytest

from aftercall.app import App
from aftercall.settings import Settings
from fakes import VirtualClock
from opened_apps import OpenApp


@pytest.fixture
def rigged(tmp_path: Path, clock: VirtualClock, open_app: OpenApp) -> App:
    """An app whose time is ours."""
    return open_app(Settings(home=tmp_path / "home"), clock)
