"""Webhooks that come twice, at once or again after a failure: each is decided once, and its
commands are sent until they are taken.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aftercall.phone.control import ControlRequest

MAX_REMEMBERED_WEBHOOKS = 20_000


@dataclass(frozen=True)
class Command:
    """A request about a call. Without a vital one the caller would hear nothing."""

    sid: str
    request: ControlRequest
    is_vital: bool = True


@dataclass
class _Delivery:
    commands: list[Command] | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class WebhookDedupe:
    def __init__(self) -> None:
        self._known: OrderedDict[str, _Delivery] = OrderedDict()

    async def process_once(
        self,
        key: str,
        decide: Callable[[], Awaitable[list[Command]]],
        send: Callable[[Command], Awaitable[None]],
    ) -> None:
        """What `send` raises is for the carrier, who delivers again; then only what was not
        sent is sent.
        """
        delivery = self._known.setdefault(key, _Delivery())
        self._known.move_to_end(key)
        while len(self._known) > MAX_REMEMBERED_WEBHOOKS:
            self._known.popitem(last=False)
        async with delivery.lock:
            if delivery.commands is None:
                delivery.commands = await decide()
            while delivery.commands:
                await send(delivery.commands[0])
                delivery.commands.pop(0)
