"""Conversations held by the vendors' own clients, for whichever server is to be judged by them."""

from base64 import b64encode
from typing import Any

from aftercall.lab.speech import utter
from aftercall.speech.sound import SILENCE

PAUSE = 20 * SILENCE


async def converse_with_realtime(
    connection: Any, says: str
) -> tuple[list[str], list[str]]:
    """A greeting, then what the caller says, then the model's answer: kinds of events, and what
    each side was heard to say.

    `connection` is one of openai's own client.
    """
    kinds: list[str] = []
    transcripts: list[str] = []
    async for event in connection:
        kinds.append(event.type)
        if event.type == "session.created":
            await connection.response.create(
                response={"instructions": "Say: Hello there!"}
            )
        elif event.type in (
            "response.output_audio_transcript.done",
            "conversation.item.input_audio_transcription.completed",
        ):
            transcripts.append(event.transcript)
        elif event.type == "response.done" and len(transcripts) > 1:
            break
        elif event.type == "response.done":
            await connection.input_audio_buffer.append(
                audio=b64encode(utter(says) + PAUSE).decode()
            )
    return kinds, transcripts
