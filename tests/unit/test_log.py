"""What others chose does not reach a log line; our own ids do."""

import pytest

from aftercall.ids import new_id
from aftercall.log import configure_logs, get_logger


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
