"""What others chose does not reach a log line; our own ids do."""

import pytest
import structlog

from aftercall.ids import new_id
from aftercall.log import MAX_REFUSALS, RefusalLimit, configure_logs, get_logger


def test_an_id_that_a_client_chose_is_logged_as_a_hash(
    capfd: pytest.CaptureFixture[str],
) -> None:
    configure_logs(as_json=True)
    log, own = get_logger("test"), new_id()
    log.warning("failed", conversation="Zyxgorblat", call="15550142")
    log.warning("failed", conversation="Zyxgorblat", call=own)
    log.warning("failed", subject="a pin")
    first, second, third = capfd.readouterr().err.splitlines()
    assert "Zyxgorblat" not in first + second
    assert "15550142" not in first
    assert own in second
    assert '"subject": "a pin"' in third
    hashed = '"conversation": "sha256:'
    assert first.partition(hashed)[2][:16] == second.partition(hashed)[2][:16] != ""


def test_refusals_that_repeat_are_counted_and_not_written() -> None:
    now = 0.0
    limit = RefusalLimit(lambda: now)

    def write(event: str) -> dict[str, object] | None:
        try:
            return dict(limit(None, "info", {"event": event}))
        except structlog.DropEvent:
            return None

    written = [write("request refused") for _ in range(MAX_REFUSALS + 50)]
    assert sum(map(bool, written)) == MAX_REFUSALS
    assert write("request failed")
    assert write("webhook refused")
    now = 61.0
    assert write("request refused") == {
        "event": "request refused",
        "left_out_before": 50,
    }
    assert write("request refused") == {"event": "request refused"}
