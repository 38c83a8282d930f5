"""ElevenLabs' own helper and ours judge a webhook alike: what one takes the other takes, what one refuses the other refuses."""

import hmac
import json
import time
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest
from pydantic import SecretStr

from aftercall.hosted.elevenlabs import ElevenLabs

SECRET = "wsec_lab"
BODY = json.dumps({"type": "post_call_transcription", "event_timestamp": 1, "data": {"conversation_id": "äöü"}}, ensure_ascii=False)


def sign(body: str, at_s: int, secret: str = SECRET) -> str:
    """As our tests and the lab's users sign."""
    return f"t={at_s},v0={hmac.new(secret.encode(), f'{at_s}.{body}'.encode(), sha256).hexdigest()}"


@pytest.fixture(scope="module")
def theirs() -> Any:
    from elevenlabs.client import ElevenLabs as Client

    return Client(api_key="unused").webhooks


def is_taken_by_theirs(theirs: Any, body: str, header: str, secret: str) -> bool:
    from elevenlabs.errors import BadRequestError

    try:
        assert theirs.construct_event(rawBody=body, sig_header=header, secret=secret) == json.loads(body)
    except (BadRequestError, ValueError):
        return False
    return True


NOW = int(time.time())
GOOD = sign(BODY, NOW)


@pytest.mark.parametrize(
    ("body", "header", "is_good"),
    [
        (BODY, GOOD, True),
        (BODY, sign(BODY, NOW - 29 * 60), True),
        (BODY, ",".join(reversed(GOOD.split(","))), True),
        (BODY, f"{GOOD},v1=00", True),
        (BODY.replace("äöü", "aou"), GOOD, False),
        (BODY, sign(BODY, NOW, "another"), False),
        (BODY, sign(BODY, NOW - 31 * 60), False),
        (BODY, GOOD.replace(f"t={NOW}", f"t={NOW - 1}"), False),
        (BODY, GOOD.partition(",")[0], False),
        (BODY, GOOD.partition(",")[2], False),
        (BODY, "t=soon,v0=00", False),
        (BODY, "", False),
    ],
)
def test_both_judge_a_signature_alike(theirs: Any, body: str, header: str, is_good: bool) -> None:
    ours = ElevenLabs(SecretStr(SECRET)).is_genuine({"elevenlabs-signature": header}, body.encode(), datetime.now(UTC))
    assert (is_taken_by_theirs(theirs, body, header, SECRET), ours) == (is_good, is_good)


def test_neither_takes_anything_without_a_secret(theirs: Any) -> None:
    header = sign(BODY, NOW, "")
    assert not is_taken_by_theirs(theirs, BODY, header, "")
    assert not ElevenLabs(None).has_key
