"""A whole agent that runs elsewhere: it reports its call to Aftercall while it talks.

Start `aftercall serve`, then:

    export AFTERCALL_API_TOKEN=$(aftercall token)
    python examples/live_call.py +15551234567

Type what the caller says; an empty line hangs up. Ring again: the agent knows what was said.
"""

import asyncio
import sys
import uuid

from aftercall.client import Client, ClientCall


async def answer(call: ClientCall, said: str) -> str:
    """Where your model goes. This one takes down whatever begins with "please"."""
    if said.lower().startswith("please "):
        await call.take_request(said[7:].rstrip(".").capitalize(), kind="task")
        return "I have written that down. Anything else?"
    return f"This is what I know: {await call.search(said)}"


async def main(caller: str) -> None:
    sid = uuid.uuid4().hex
    async with Client().call(caller=caller, source="example", sid=sid) as call:
        print(call.briefing.text)
        greeting = call.briefing.greeting or "Hello!"
        await call.turn("agent", greeting)
        print(f"Agent: {greeting}")
        while said := (await asyncio.to_thread(sys.stdin.readline)).strip():
            await call.turn("caller", said)
            reply = await answer(call, said)
            await call.turn("agent", reply)
            print(f"Agent: {reply}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
