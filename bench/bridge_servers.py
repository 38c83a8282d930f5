"""Two bridges that do nothing but pass audio on: what ours is compared with.

Started as a process of its own.
"""

import asyncio
import json
import sys
from base64 import b64decode, b64encode
from contextlib import suppress
from typing import Any

import uvicorn
import uvloop
from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

SETTINGS = '{"type":"Settings"}'


async def open_agent(agent: str) -> Any:
    socket = await connect(agent, compression=None, proxy=None)
    await socket.recv()
    await socket.send(SETTINGS)
    return socket


def media(stream: str, payload: bytes) -> str:
    return json.dumps(
        {
            "event": "media",
            "streamSid": stream,
            "media": {"payload": b64encode(payload).decode()},
        }
    )


async def serve_websockets(port: int, agent: str) -> None:
    async def hold(carrier: ServerConnection) -> None:
        engine = await open_agent(agent)
        stream = ""

        async def speak() -> None:
            async for message in engine:
                if isinstance(message, bytes):
                    await carrier.send(media(stream, message))

        async with engine:
            speaking = asyncio.create_task(speak())
            with suppress(ConnectionClosed):
                async for frame in carrier:
                    message = json.loads(frame)
                    if message["event"] == "media":
                        await engine.send(b64decode(message["media"]["payload"]))
                    elif message["event"] == "start":
                        stream = message["streamSid"]
            speaking.cancel()

    async with serve(hold, "127.0.0.1", port, compression=None):
        print("ready http://", flush=True)
        await asyncio.Event().wait()


def serve_fastapi(port: int, agent: str) -> None:
    app = FastAPI()

    @app.websocket("/twilio/media")
    async def hold(carrier: WebSocket) -> None:
        await carrier.accept()
        engine = await open_agent(agent)
        stream = ""

        async def speak() -> None:
            async for message in engine:
                if isinstance(message, bytes):
                    await carrier.send_text(media(stream, message))

        async with engine:
            speaking = asyncio.create_task(speak())
            with suppress(WebSocketDisconnect, ConnectionClosed):
                while True:
                    message = json.loads(await carrier.receive_text())
                    if message["event"] == "media":
                        await engine.send(b64decode(message["media"]["payload"]))
                    elif message["event"] == "start":
                        stream = message["streamSid"]
            speaking.cancel()

    print("ready http://", flush=True)
    uvicorn.run(
        app,
        port=port,
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        log_level="error",
    )


if __name__ == "__main__":
    kind, port, agent = sys.argv[1:]
    if kind == "websockets":
        uvloop.run(serve_websockets(int(port), agent))
    else:
        serve_fastapi(int(port), agent)
