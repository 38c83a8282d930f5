"""What a transcriber of recordings is sent and believed, against the emulated one."""

import struct
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from aftercall.lab.rest import REFUSALS
from aftercall.lab.speech import HALLUCINATED_TEXT, EmulatedAudio, make_router, utter
from aftercall.speech.sound import SAMPLE_RATE_HZ, read_wav, write_wav
from aftercall.speech.transcription import make_upload, parse_transcription
from aftercall.tester.models import transcribe

WORDS = utter("Hello")
MADE_UP = {"no_speech_prob": 0.93, "avg_logprob": -1.4}


def mulaw_wav(sound: bytes, channels: int = 1) -> bytes:
    """As carriers write them when nobody asks for anything else."""
    form = struct.pack(
        "<HHIIHH", 7, channels, SAMPLE_RATE_HZ, SAMPLE_RATE_HZ * channels, channels, 8
    )
    parts = b"".join(
        name + struct.pack("<I", len(part)) + part
        for name, part in ((b"fmt ", form), (b"data", sound))
    )
    return b"RIFF" + struct.pack("<I", 4 + len(parts)) + b"WAVE" + parts


async def hear(sound: bytes) -> str:
    app = FastAPI(exception_handlers=REFUSALS)
    app.include_router(make_router(EmulatedAudio("sk-lab", text="Open a bug.")))
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app), base_url="http://lab"
    ) as http:
        return (
            await transcribe(http, "http://lab/v1", SecretStr("sk-lab"), sound)
        ).text


async def upload(name: str, sound: bytes) -> int:
    app = FastAPI(exception_handlers=REFUSALS)
    app.include_router(make_router(EmulatedAudio("sk-lab")))
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app), base_url="http://lab"
    ) as http:
        answer = await http.post(
            "/v1/audio/transcriptions",
            data={"model": "whisper-1"},
            files={"file": (name, sound, "audio/wav")},
            headers={"Authorization": "Bearer sk-lab"},
        )
    return answer.status_code


async def test_the_emulated_one_takes_no_nameless_file_and_no_mulaw() -> None:
    assert [
        await upload(name, write_wav(WORDS))
        for name in ("call.wav", "call", "call.bin")
    ] == [
        200,
        400,
        400,
    ]
    assert await upload("call.wav", mulaw_wav(WORDS)) == 400


async def test_a_recording_of_mulaw_is_sent_as_plain_samples() -> None:
    assert await hear(mulaw_wav(WORDS)) == "Hello"
    name, sent, _ = make_upload(mulaw_wav(WORDS))
    assert (name, read_wav(sent)) == ("call.wav", [WORDS])
    assert (
        len(
            read_wav(
                make_upload(mulaw_wav(WORDS[: len(WORDS) // 2 * 2], channels=2))[1]
            )
        )
        == 2
    )


@pytest.mark.parametrize(
    ("sound", "name"),
    [
        (write_wav(WORDS), "call.wav"),
        (b"ID3\x04rest", "call.mp3"),
        (b"\xff\xfb\x90\x00rest", "call.mp3"),
        (b"OggS\x00rest", "call.ogg"),
        (b"fLaC\x00rest", "call.flac"),
        (b"", "call.wav"),
    ],
)
def test_a_file_is_named_by_what_is_in_it_and_sent_unchanged(
    sound: bytes, name: str
) -> None:
    assert make_upload(sound)[:2] == (name, sound)


@given(st.binary(max_size=60), st.integers(0, 120))
def test_a_broken_file_is_sent_as_it_is_or_as_samples_and_never_raises(
    noise: bytes, cut: int
) -> None:
    for sound in (noise, b"RIFF" + noise, mulaw_wav(noise)[:cut]):
        assert make_upload(sound)[0].startswith("call.")


async def test_words_that_silence_brought_forth_are_left_out() -> None:
    assert await hear(write_wav(WORDS)) == "Hello"
    assert await hear(write_wav(b"\xff" * SAMPLE_RATE_HZ)) == ""
    spoken: dict[str, Any] = {
        "start": 0,
        "end": 1,
        "text": " Open a bug.",
        "no_speech_prob": 0.1,
        "avg_logprob": -0.2,
    }
    silent = {"start": 1, "end": 2, "text": f" {HALLUCINATED_TEXT}", **MADE_UP}
    heard = parse_transcription(
        {
            "text": f"Open a bug. {HALLUCINATED_TEXT}",
            "language": "english",
            "segments": [spoken, silent],
        }
    )
    assert (heard.text, heard.segments) == ("Open a bug.", ((0.0, 1.0, "Open a bug."),))


@pytest.mark.parametrize(
    "doubt",
    [
        {"no_speech_prob": 0.93},
        {"avg_logprob": -1.4},
        {"no_speech_prob": 0.93, "avg_logprob": -0.3},
        {},
    ],
)
def test_one_doubt_alone_takes_no_words_away(doubt: dict[str, float]) -> None:
    assert (
        parse_transcription(
            {
                "text": "Yes.",
                "segments": [{"start": 0, "end": 1, "text": "Yes.", **doubt}],
            }
        ).text
        == "Yes."
    )


@pytest.mark.parametrize(
    "answer",
    [
        [],
        "words",
        None,
        {},
        {"text": "x", "segments": [1]},
        {"text": "x", "segments": [{"text": "x"}]},
    ],
)
def test_an_answer_that_is_no_transcript_is_refused(answer: Any) -> None:
    with pytest.raises(ValueError, match="is no transcript"):
        parse_transcription(answer)
