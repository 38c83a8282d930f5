"""ElevenLabs' own helper and ours judge a webhook alike: what one takes the other takes, what
one refuses the other refuses.
"""

import hmac
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest
from pydantic import SecretStr

from aftercall.hosted.adapters import ElevenLabs

SECRET = "wsec_lab"
BODY = json.dumps(
    {
        "type": "post_call_transcription",
        "event_timestamp": 1,
        "data": {"conversation_id": "äöü"},
    },
    ensure_ascii=False,
)


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
        assert theirs.construct_event(
            rawBody=body, sig_header=header, secret=secret
        ) == json.loads(body)
    except (BadRequestError, ValueError):
        return False
    return True


# What the header is when it is sent `now`: their helper goes by the real clock, so nothing is
# signed before the test runs.
HEADERS: dict[str, tuple[Callable[[int], str], bool]] = {
    "signed now": (lambda now: sign(BODY, now), True),
    "nearly too old": (lambda now: sign(BODY, now - 29 * 60), True),
    "in another order": (
        lambda now: ",".join(reversed(sign(BODY, now).split(","))),
        True,
    ),
    "beside another scheme": (lambda now: f"{sign(BODY, now)},v1=00", True),
    "of another body": (lambda now: sign(BODY.replace("äöü", "aou"), now), False),
    "with another secret": (lambda now: sign(BODY, now, "another"), False),
    "too old": (lambda now: sign(BODY, now - 31 * 60), False),
    "of another time": (
        lambda now: sign(BODY, now).replace(f"t={now}", f"t={now - 1}"),
        False,
    ),
    "without a signature": (lambda now: sign(BODY, now).partition(",")[0], False),
    "without a time": (lambda now: sign(BODY, now).partition(",")[2], False),
    "of no time": (lambda now: "t=soon,v0=00", False),
    "empty": (lambda now: "", False),
}


@pytest.mark.parametrize("name", HEADERS)
def test_both_judge_a_signature_alike(theirs: Any, name: str) -> None:
    make, is_good = HEADERS[name]
    header = make(int(time.time()))
    ours = ElevenLabs(SecretStr(SECRET)).is_genuine(
        {"elevenlabs-signature": header}, BODY.encode(), datetime.now(UTC)
    )
    assert (is_taken_by_theirs(theirs, BODY, header, SECRET), ours) == (
        is_good,
        is_good,
    )


def test_neither_takes_anything_without_a_secret(theirs: Any) -> None:
    header = sign(BODY, int(time.time()), "")
    assert not is_taken_by_theirs(theirs, BODY, header, "")
    assert not ElevenLabs(None).has_key
