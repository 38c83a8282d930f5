"""Where each service names a recording, in its report and in its API."""

from typing import Any

import pytest
from pydantic import SecretStr

from aftercall.carrier.media import (
    PLATFORMS,
    find_recording_url,
    find_reported_url,
    open_recording_api,
)
from aftercall.settings import Settings
from aftercall.settings.providers import RetellSettings

BOTH, MONO = "https://x/both.wav", "https://x/mono.mp3"
VAPI = {"recording": {"stereoUrl": BOTH, "mono": {"combinedUrl": MONO}}}
RETELL = {"recording_multi_channel_url": BOTH, "recording_url": MONO}


@pytest.mark.parametrize(
    ("platform", "event", "found"),
    [
        ("vapi", {"message": {"artifact": VAPI}}, BOTH),
        ("vapi", {"message": {"artifact": {"recordingUrl": MONO}}}, MONO),
        ("vapi", {"message": {"artifact": {"recording": None}}}, None),
        ("retell", {"event": "call_ended", "call": RETELL}, BOTH),
        ("retell", {"call": {"recording_url": MONO}}, MONO),
        ("bland", {"recording_url": MONO}, MONO),
        ("bland", {"recording_url": None}, None),
        ("elevenlabs", {"data": {"has_audio": True}}, None),
    ],
)
def test_a_report_names_the_recording_with_both_sides_apart(
    platform: str, event: dict[str, Any], found: str | None
) -> None:
    assert find_reported_url(platform, event) == found


@pytest.mark.parametrize("answer", [{}, {"call": 7}, {"recording_url": ["https://x"]}])
@pytest.mark.parametrize("service", ["telnyx", *PLATFORMS])
def test_an_odd_answer_names_nothing(service: str, answer: dict[str, Any]) -> None:
    assert find_recording_url(service, answer) is None


def test_a_service_is_asked_only_with_a_key_and_no_key_is_shown() -> None:
    settings = Settings()
    assert not any(
        open_recording_api(settings, service, "c1").can_ask for service in PLATFORMS
    )
    retell = RetellSettings(api_key=SecretStr("key-of-ours"))
    api = open_recording_api(
        settings.model_copy(update={"retell": retell}), "retell", "c1"
    )
    assert api.can_ask
    assert api.make_url(api.lookup_path) == "https://api.retellai.com/v2/get-call/c1"
    assert "key-of-ours" not in repr(api)
