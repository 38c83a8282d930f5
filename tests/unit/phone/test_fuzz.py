"""Whatever comes down a socket: `receive` never raises, and only ever yields events that are
known.
"""

import json
import random
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.phone.wire import (
    AudioIn,
    AudioOut,
    Clear,
    Mark,
    Oddity,
    OddMessage,
    StreamStarted,
    StreamStopped,
    WireEvent,
)
from carriers import CARRIERS, Carrier, started

FRAMES = 20_000
KNOWN = get_args(WireEvent)
JUNK: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**25,
    1.5,
    "",
    "x",
    "\ud800",
    "🎈",
    [],
    [[]],
    {},
    {"a": {}},
    "9" * 400,
    float("inf"),
)


def mutate(rng: random.Random, carrier: Carrier, frame: str) -> str | bytes:
    kind = rng.randrange(9)
    if kind == 0:  # cut short
        return frame[: rng.randrange(len(frame))]
    if kind == 1:  # bytes turned
        raw = bytearray(frame.encode())
        for _ in range(rng.randrange(1, 6)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        return bytes(raw)
    if kind == 2:  # much too long
        return frame.replace(
            '"payload": "', '"payload": "' + "QUJD" * rng.choice((10, 10_000, 40_000))
        )
    if kind == 3:  # two in one
        return frame + carrier.media(rng.randrange(9))
    if kind == 4:  # another event by name
        return json.dumps(
            json.loads(frame)
            | {
                "event": rng.choice(
                    (*JUNK, "start", "media", "dtmf", "mark", "stop?", "clear")
                )
            }
        )
    if kind == 5:  # nested beyond reason
        return frame.replace("{", "{" * rng.choice((2, 30_000)), 1)
    message = json.loads(frame)
    place = message
    if kind > 6 and (
        inner := [value for value in message.values() if isinstance(value, dict)]
    ):
        place = rng.choice(inner)
    if place:
        key = rng.choice(list(place))
        if rng.random() < 0.3:
            del place[key]
        else:
            place[key] = rng.choice(JUNK)
    return json.dumps(message)


def pick(rng: random.Random, carrier: Carrier) -> str:
    chunk = rng.choice((rng.randrange(400), rng.randrange(400), 10**17))
    frames: tuple[str, ...] = (
        carrier.connected(),
        carrier.start(),
        carrier.start(encoding=rng.choice(("PCMA", "opus", None))),
        carrier.media(chunk),
        carrier.media(chunk, rng.randbytes(rng.randrange(1, 400))),
        carrier.media(chunk, stream="another"),
        carrier.digit(rng.choice("0123456789*#"), rng.randrange(60)),
        carrier.mark(rng.choice("abc"), rng.randrange(60)),
        *((carrier.stop(),) if rng.random() < 0.02 else ()),
    )
    return rng.choice(frames)


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda carrier: carrier.name)
def test_twenty_thousand_broken_frames_raise_nothing_and_mean_nothing_unknown(
    carrier: Carrier,
) -> None:
    rng = random.Random(20_260_213)
    wire = carrier.wire()
    seen: set[type] = set()
    odd: set[Oddity] = set()
    for _ in range(FRAMES):
        frame: str | bytes = pick(rng, carrier)
        if rng.random() < 0.7:
            frame = mutate(rng, carrier, str(frame))
        for event in wire.receive(frame):
            assert isinstance(event, KNOWN)
            seen.add(type(event))
            if isinstance(event, OddMessage):
                odd.add(event.reason)
            if isinstance(event, AudioIn):
                assert event.payload
        if wire.is_open and rng.random() < 0.1:
            json.loads(wire.send(rng.choice((AudioOut(b"\x00"), Mark("a"), Clear()))))
        if rng.random() < 0.005:
            wire.close()
            wire = carrier.wire()
    assert {StreamStarted, AudioIn, StreamStopped} < seen
    assert odd >= {
        Oddity.TOO_LARGE,
        Oddity.NOT_JSON,
        Oddity.SHAPE,
        Oddity.NOT_BASE64,
        Oddity.SECOND_START,
        Oddity.OTHER_STREAM,
    }


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda carrier: carrier.name)
@given(frame=st.binary(max_size=300) | st.text(max_size=300))
def test_any_bytes_and_any_text_are_only_odd(
    carrier: Carrier, frame: str | bytes
) -> None:
    assert all(
        isinstance(event, OddMessage) for event in started(carrier).receive(frame)
    )


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda carrier: carrier.name)
@given(
    event=st.sampled_from(
        ["connected", "start", "media", "dtmf", "mark", "error", "stop"]
    ),
    inner=_JSON,
    is_started=st.booleans(),
)
def test_any_json_inside_any_event_is_survived(
    carrier: Carrier, event: str, inner: object, is_started: bool
) -> None:
    wire = started(carrier) if is_started else carrier.wire()
    frame = json.loads(carrier.media(1)) | {
        "event": event,
        event: inner,
        "payload": inner,
    }
    assert all(isinstance(item, KNOWN) for item in wire.receive(json.dumps(frame)))
