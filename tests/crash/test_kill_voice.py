"""kill -9 in the middle of a streamed call: every turn that was written down is in the archive
after the restart, and the caller is told that the connection was lost.
"""

import asyncio
import os
import sys
from pathlib import Path

from aftercall.app import build
from aftercall.journal.journal import recover
from aftercall.lab.deepgram import EmulatedDeepgram
from aftercall.lab.engine import Act, ScriptSay, ScriptToolCall, reply_in_order
from aftercall.lab.twilio import EmulatedTwilio
from aftercall.settings import Settings
from aftercall.web.twilio import CUT_OFF
from voice_server import KEY, TOKEN, told


async def test_a_streamed_call_and_its_request_survive_the_death_of_the_server(
    tmp_path: Path,
) -> None:
    taking: list[Act] = [
        ScriptToolCall("take_request", {"title": "Call the plumber"}),
        ScriptSay("Taken down."),
    ]
    async with (
        EmulatedDeepgram(KEY, reply_in_order(taking)) as engine,
        EmulatedTwilio(TOKEN, speed=10.0) as twilio,
    ):
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("AFTERCALL_")
        }
        port = 18_000 + os.getpid() % 10_000
        address = f"http://127.0.0.1:{port}"
        own = {
            "AFTERCALL_HOME": str(tmp_path),
            "AFTERCALL_PUBLIC_URL": address,
            "AFTERCALL_ENGINE": "deepgram",
        }
        own["AFTERCALL_FAULT"] = (
            "bridge.after_request"  # the request is written, the agent does not know yet
        )
        keys = {
            "TWILIO_AUTH_TOKEN": TOKEN,
            "DEEPGRAM_API_KEY": KEY,
            "AFTERCALL_DEEPGRAM_URL": engine.url,
        }
        arguments = (sys.executable, "-m", "aftercall", "serve", "--port", str(port))

        async def start(environment: dict[str, str]) -> asyncio.subprocess.Process:
            server = await asyncio.create_subprocess_exec(
                *arguments,
                env=inherited | environment | keys,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=tmp_path,
            )
            assert server.stdout is not None
            assert b"http://" in await server.stdout.readline()
            return server

        server = await start(own)
        ring = await twilio.ring(f"{address}/twilio/voice", caller="+15550100")
        assert ring.phone is not None, ring.fault
        await ring.phone.wait_for_words("What can I do")
        ring.phone.queue_text("Please call the plumber.")
        await ring.phone.wait_closed()
        assert await server.wait() == -9
        del own["AFTERCALL_FAULT"]
        again = await start(own)
        await twilio.wait_for_hang_up(ring)
        assert (ring.heard[-1], ring.fault) == (CUT_OFF, None)
        again.terminate()
        await again.wait()
    app = build(Settings(home=tmp_path))
    recover(app.journal)
    (row,) = app.store.list_page(limit=5)
    call, _ = app.archive.read(str(row.archive_name))
    app.close()
    assert call.end_reason == "interrupted"
    assert told(call) == [
        ("agent", "Hello! I'm the assistant. What can I do for you?"),
        ("caller", "Please call the plumber."),
    ]
    assert [event.kind for event in call.events] == ["request.taken"]
