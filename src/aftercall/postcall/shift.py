"""An office at work in a running process: steps in threads, the urgent ones first, and their ends written together.

A step that a crash cut off is taken again; one whose end is on record is not, whatever the durable engine remembers.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from aftercall.db.clerk import Clerk
from aftercall.errors import AftercallError
from aftercall.faults import reach
from aftercall.llm.reader import Reader
from aftercall.log import get_logger
from aftercall.model.calls import Call
from aftercall.postcall.crew import Crew
from aftercall.postcall.office import Office
from aftercall.postcall.patience import pause_after
from aftercall.postcall.steps import FIRST, LAST, PAGES
from aftercall.postcall.store import begin, finish

HANDS = 24  # steps that mostly wait for a model's answer
OWN_HANDS = 4  # steps that mostly want a processor, and there is one lock of the interpreter for all of them
T = TypeVar("T")

log = get_logger("postcall")


@dataclass(frozen=True)
class Shift:
    office: Office
    crew: Crew
    clerk: Clerk

    @classmethod
    def of(cls, office: Office) -> "Shift":
        return cls(office, Crew(hands_for(office.desk.reader)), Clerk(office.desk.database))

    def end(self) -> None:
        self.crew.close()
        self.clerk.close()

    async def take(self, call_id: str, names: Sequence[str], number: int, *, again: bool = False) -> dict[str, float]:
        """Take steps of a call, for the so-manieth time; which of them should be taken again, and after how many seconds.

        One step's failure never stops another. What is raised is the database's: then it was not recorded how some step ended.
        """
        now = self.office.desk.clock.now()
        begun = await self.clerk.write(lambda connection: begin(connection, call_id, names, now, again=again))
        reach("postcall.after_begin")
        begun.sort(key=LAST.__contains__)
        self.office.hold(call_id, begun)
        try:
            pauses = await self._take_begun(call_id, begun, number, is_repeat=len(begun) < len(names))
        finally:
            for name in begun or [""]:
                self.office.let_go(call_id, name)
        return {name: pause_s for name, pause_s in zip(begun, pauses, strict=True) if pause_s is not None}

    async def take_left_behind(self, call_id: str) -> dict[str, float]:
        """What the summary had left behind, once it has come after all."""
        names = await asyncio.to_thread(self.office.left_behind, call_id)
        reach("postcall.after_late_summary")
        return await self.take(call_id, names, 1, again=True) if names else {}

    async def _take_begun(self, call_id: str, begun: list[str], number: int, *, is_repeat: bool) -> list[float | None]:
        try:
            call = await self._in_thread(FIRST, partial(self.office.read, call_id))
            if is_repeat:  # a crash may have come between a step's end and this
                await self._in_thread(FIRST, partial(self.office.round_off, call))
        except Exception as error:  # noqa: BLE001 - the edge of all its steps: without the call there is none
            return [await self._put_off_or_give_up(call_id, name, number, error) for name in begun]
        summary = asyncio.Event()
        if FIRST not in begun:
            summary.set()
        pauses = await _all(self._take_in_order(call, name, number, summary) for name in begun if name not in LAST)
        return pauses + await _all(self._take_one(call, name, number) for name in begun if name in LAST)

    async def _take_in_order(self, call: Call, name: str, number: int, summary: asyncio.Event) -> float | None:
        """Pages are made of the summary, and begun when it has come to some end or other."""
        if name in PAGES:
            await summary.wait()
        try:
            return await self._take_one(call, name, number)
        finally:
            if name == FIRST:
                summary.set()

    async def _take_one(self, call: Call, name: str, number: int) -> float | None:
        """Seconds until it should be tried again, or None: it ended."""
        try:
            outcome = await self._in_thread(name, partial(self.office.make, call, name))
            now = self.office.desk.clock.now()
            await self.clerk.write(lambda connection: finish(connection, call.id, name, outcome, now))
            reach("postcall.after_finish")
            await self._in_thread(FIRST, partial(self.office.round_off, call, name))  # the engine takes it for done only after this
        except Exception as error:  # noqa: BLE001 - the edge of a step: it is recorded, shown, and can be run again
            return await self._put_off_or_give_up(call.id, name, number, error)
        return None

    async def _put_off_or_give_up(self, call_id: str, name: str, number: int, error: Exception) -> float | None:
        ours = error if isinstance(error, AftercallError) else None
        # What a person can act on; the text of foreign errors may hold speech and is left out.
        reason = str(ours) if ours else type(error).__name__
        pause_s = pause_after(number, ours.retry_after_s) if ours and ours.retryable else None
        if pause_s is None:
            log.warning("a step failed", call=call_id, step=name)
            await asyncio.to_thread(self.office.give_up, call_id, name, reason)
        else:
            await asyncio.to_thread(self.office.put_off, call_id, name, reason, pause_s)
        return pause_s

    async def _in_thread(self, name: str, job: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self.crew.submit(0 if name == FIRST else 1, job))


async def _all(takings: Iterable[Coroutine[None, None, T]]) -> list[T]:
    """Wait for every one, also when one of them raises: none goes on behind the back of whoever tries again."""
    ended = await asyncio.gather(*takings, return_exceptions=True)
    for result in ended:
        if isinstance(result, BaseException):
            raise result
    return [result for result in ended if not isinstance(result, BaseException)]


def hands_for(reader: Reader) -> int:
    return OWN_HANDS if reader.name == "rules" else HANDS
