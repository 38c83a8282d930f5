"""A bridge on Pipecat that does nothing but pass audio on: its Twilio serializer, its pipeline,
and a socket to the same agent.

Run by the Python that has Pipecat (`pip install "pipecat-ai[websocket]" uvicorn uvloop`); it is
no dependency of ours. Everything is as its documents show it, at the phone's own sampling rate,
so that nothing is resampled.
"""

import asyncio
import audioop
import sys
from contextlib import suppress
from typing import Any

import uvicorn
from fastapi import FastAPI, WebSocket
from loguru import logger
from pipecat.frames.frames import Frame, InputAudioRawFrame, OutputAudioRawFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.serializers.twilio import TwilioFrameSerializer
from pipecat.transports.websocket.fastapi import (
    FastAPIWebsocketParams,
    FastAPIWebsocketTransport,
)
from pipecat.workers.runner import WorkerRunner
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

RATE = 8_000


class Agent(FrameProcessor):  # type: ignore[misc] # Pipecat is not there when types are checked
    """The caller's audio goes to the agent's socket, the agent's comes back from it."""

    def __init__(self, socket: Any) -> None:
        super().__init__()
        self._socket = socket

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, InputAudioRawFrame):
            await self._socket.send(audioop.lin2ulaw(frame.audio, 2))
        else:
            await self.push_frame(frame, direction)

    async def speak(self) -> None:
        with suppress(ConnectionClosed):
            async for message in self._socket:
                if isinstance(message, bytes):
                    await self.push_frame(
                        OutputAudioRawFrame(
                            audio=audioop.ulaw2lin(message, 2),
                            sample_rate=RATE,
                            num_channels=1,
                        )
                    )


def serve(port: int, agent: str) -> None:
    app = FastAPI()

    @app.websocket("/twilio/media")
    async def hold(carrier: WebSocket) -> None:
        await carrier.accept()
        await carrier.receive_text()
        start = await carrier.receive_json()
        serializer = TwilioFrameSerializer(
            start["streamSid"],
            params=TwilioFrameSerializer.InputParams(auto_hang_up=False),
        )
        params = FastAPIWebsocketParams(
            audio_in_enabled=True, audio_out_enabled=True, serializer=serializer
        )
        transport = FastAPIWebsocketTransport(websocket=carrier, params=params)
        async with connect(agent, compression=None, proxy=None) as socket:
            await socket.recv()
            await socket.send('{"type":"Settings"}')
            middle = Agent(socket)
            pipeline = Pipeline([transport.input(), middle, transport.output()])
            worker = PipelineWorker(
                pipeline,
                params=PipelineParams(
                    audio_in_sample_rate=RATE, audio_out_sample_rate=RATE
                ),
            )
            speaking: list[asyncio.Task[None]] = []

            @worker.event_handler("on_pipeline_started")  # type: ignore[untyped-decorator]
            async def begin(*_: Any) -> None:
                speaking.append(asyncio.create_task(middle.speak()))

            await WorkerRunner(handle_sigint=False).run(worker)
            for task in speaking:
                task.cancel()

    print("ready http://", flush=True)
    uvicorn.run(
        app,
        port=port,
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        log_level="error",
    )


if __name__ == "__main__":
    logger.remove()
    serve(int(sys.argv[1]), sys.argv[2])
