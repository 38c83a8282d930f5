"""What a frame costs on each carrier's wire, next to the least that any reader of it could do.

Ratios within one run.

python bench/bench_wires.py
"""

import base64
import json
import time
from collections.abc import Callable, Sequence

from aftercall.phone.telnyx import TelnyxWire
from aftercall.phone.twilio import TwilioWire
from aftercall.phone.wire import AudioOut, Wire
from tables import median, met, print_table

FRAMES = 10_000
ROUNDS = 7
CALLS = 200
FRAMES_PER_S = 50
AUDIO = bytes(range(160))
PAYLOAD = base64.b64encode(AUDIO).decode()
STREAM = "MZ" + "0" * 32


def twilio_frame(chunk: int) -> str:
    media = {
        "track": "inbound",
        "chunk": str(chunk),
        "timestamp": str(20 * chunk),
        "payload": PAYLOAD,
    }
    return json.dumps(
        {
            "event": "media",
            "sequenceNumber": str(chunk + 1),
            "streamSid": STREAM,
            "media": media,
        }
    )


def telnyx_frame(chunk: int) -> str:
    media = {
        "track": "inbound",
        "chunk": str(chunk),
        "timestamp": str(20 * chunk),
        "payload": PAYLOAD,
    }
    return json.dumps(
        {
            "event": "media",
            "sequence_number": str(chunk + 1),
            "stream_id": STREAM,
            "media": media,
        }
    )


def twilio() -> Wire:
    wire = TwilioWire()
    media = {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1}
    wire.receive(
        json.dumps(
            {
                "event": "start",
                "streamSid": STREAM,
                "start": {"callSid": "CA1", "mediaFormat": media},
            }
        )
    )
    return wire


def telnyx(encoding: str = "PCMU") -> Wire:
    wire = TelnyxWire()
    media = {"encoding": encoding, "sample_rate": 8000, "channels": 1}
    wire.receive(
        json.dumps(
            {
                "event": "start",
                "stream_id": STREAM,
                "start": {"call_control_id": "v3:1", "media_format": media},
            }
        )
    )
    return wire


def shuffled(frames: list[str]) -> list[str]:
    """Every pair the wrong way round."""
    return [
        frame
        for first, second in zip(frames[::2], frames[1::2], strict=True)
        for frame in (second, first)
    ]


def time_each(work: Callable[[str], object], frames: Sequence[str]) -> float:
    begun = time.perf_counter()
    for frame in frames:
        work(frame)
    return (time.perf_counter() - begun) / len(frames) * 1e6


def read_bare(frame: str) -> bytes:
    return base64.b64decode(json.loads(frame)["media"]["payload"], validate=True)


def write_bare(_: str) -> str:
    return json.dumps(
        {
            "event": "media",
            "streamSid": STREAM,
            "media": {"payload": base64.b64encode(AUDIO).decode()},
        }
    )


def measure(
    title: str,
    bare: Callable[[str], object],
    wires: dict[str, tuple[Callable[[], Callable[[str], object]], list[str]]],
    aim: float,
) -> None:
    """Rounds are interleaved, so that a busy moment of the machine hits all."""
    times: dict[str, list[float]] = {name: [] for name in wires}
    bare_times = []
    for _ in range(ROUNDS):
        bare_times.append(time_each(bare, next(iter(wires.values()))[1]))
        for name, (make, frames) in wires.items():
            times[name].append(time_each(make(), frames))
    least = median(bare_times)
    rows = [["json + base64 alone", f"{least:.2f}", "1.00", share(least), "", ""]]
    for name, taken in times.items():
        ratio = median(taken) / least
        rows.append(
            [
                name,
                f"{median(taken):.2f}",
                f"{ratio:.2f}",
                share(median(taken)),
                f"≤ {aim}",
                met(ratio <= aim),
            ]
        )
    print_table(
        title, ["", "µs a frame", "ratio", f"core for {CALLS} calls", "aim", ""], rows
    )


def share(microseconds: float) -> str:
    return f"{microseconds * CALLS * FRAMES_PER_S / 1e6:.1%}"


def speak(wire: Wire) -> Callable[[str], object]:
    command = AudioOut(AUDIO)
    return lambda _: wire.send(command)


if __name__ == "__main__":
    from_twilio = [twilio_frame(chunk) for chunk in range(1, FRAMES + 1)]
    from_telnyx = [telnyx_frame(chunk) for chunk in range(1, FRAMES + 1)]
    measure(
        "An incoming frame of 20 ms: checked, decoded, in order",
        read_bare,
        {
            "twilio": (lambda: twilio().receive, from_twilio),
            "telnyx": (lambda: telnyx().receive, from_telnyx),
            "telnyx, A-law": (lambda: telnyx("PCMA").receive, from_telnyx),
            "telnyx, shuffled": (lambda: telnyx().receive, shuffled(from_telnyx)),
        },
        aim=1.5,
    )
    measure(
        "An outgoing frame of 20 ms",
        write_bare,
        {
            "twilio": (lambda: speak(twilio()), from_twilio),
            "telnyx": (lambda: speak(telnyx()), from_telnyx),
        },
        aim=0.5,
    )
