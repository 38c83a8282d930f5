"""Twenty thousand bad frames on a live call: it goes on, hears every good frame between them,
and keeps nothing of the rest.
"""

import asyncio
import gc
import json
import random
import tracemalloc
from collections.abc import Iterator

import pytest

from aftercall.app import App
from aftercall.phone.carrier_frames import CarrierFrames
from fakes import FakeVoiceEngine, VirtualClock
from voice_rig import Rig

FRAMES = 10_000  # on each of the two wires
KEPT_BYTES = 1_000_000
VALUES = [
    None,
    True,
    -1,
    0,
    10**30,
    1.5,
    "",
    "x",
    "\ud800",
    [],
    {},
    {"payload": "*"},
    ["media"],
    "é" * 50,
]


def bad_frames(luck: random.Random, side: CarrierFrames) -> Iterator[str | bytes]:
    """Every kind of wrong, by a seeded generator; the ones that would rightly end the call are
    left out.
    """
    good = [
        side.media(b"\xff" * 160),
        side.digit("1"),
        side.mark("m1"),
        side.connected(),
        side.start({"token": "x"}),
    ]
    while True:
        match luck.randrange(9):
            case 0:
                yield luck.randbytes(luck.randrange(200))
            case 1:
                yield luck.choice(good)[: luck.randrange(200)]
            case 2:
                yield json.dumps(
                    {
                        "event": luck.choice(
                            ["media", "mark", "dtmf", "start", "stop", "clear", "é"]
                        ),
                        "media": luck.choice(VALUES),
                    }
                )
            case 3:
                yield "[" * luck.randrange(5_000)
            case 4:
                yield json.dumps(
                    {
                        "event": "media",
                        "media": {"payload": "A" * luck.choice([3, 70_000])},
                    }
                )
            case 5:
                message = json.loads(luck.choice(good[:3]))
                message[luck.choice(list(message))] = luck.choice(VALUES)
                yield json.dumps(message) if message.get("event") != "media" else "{}"
            case 6:
                yield good[4]  # a second start
            case 7:
                yield good[0]  # a number that came before
            case _:
                yield json.dumps(luck.choice(VALUES))


@pytest.mark.parametrize("carrier", ["twilio", "telnyx"])
async def test_a_call_goes_on_through_thousands_of_bad_frames(
    rigged: App, clock: VirtualClock, carrier: str
) -> None:
    rig = Rig(rigged, clock, FakeVoiceEngine(), carrier)
    await rig.answer()
    await rig.greet()
    luck = random.Random(20260213)
    bad = bad_frames(luck, rig.side)
    rig.line.add_frames(next(bad))
    await rig.pass_time(0)
    tasks = len(asyncio.all_tasks())
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    sent = 0
    for number in range(FRAMES):
        rig.line.add_frames(next(bad))
        if number % 20 == 0:
            rig.line.add_frames(rig.side.media(b"\x42" * 160))
            sent += 1
        if number % 500 == 0:
            await rig.line.wait_empty()
    await rig.line.wait_empty()
    async with asyncio.timeout(20):
        while len(asyncio.all_tasks()) != tasks:
            await asyncio.sleep(0.005)
    heard = [piece for piece in rig.engine.session.audio if piece == b"\x42" * 160]
    rig.engine.session.audio.clear()
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert len(heard) == sent
    assert kept < KEPT_BYTES
    assert not rig.holding.done()
    rig.line.add_frames(rig.side.stop())
    call = await rig.sealed()
    oddities = next(
        event.data for event in call.events if event.kind == "line.oddities"
    )
    assert call.end_reason == "caller_hung_up"
    assert {"not_json", "too_large", "second_start", "shape"} <= set(oddities)
    assert sum(oddities.values()) > FRAMES / 2
