"""An office at work in a running process: steps in threads, the urgent ones first, and their
ends written together.

A step that a crash cut off is taken again; one whose end is on record is not, whatever the
durable engine remembers.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from aftercall.db.group_commit import GroupCommitter
from aftercall.durable import to_step_error
from aftercall.faults import fault_point
from aftercall.llm.reader import Reader
from aftercall.log import get_logger
from aftercall.model.calls import Call
from aftercall.postcall.ahead import sum_up_together
from aftercall.postcall.crew import Crew
from aftercall.postcall.office import Office
from aftercall.postcall.patience import pause_after
from aftercall.postcall.steps import FIRST, LAST, PAGES, RULES
from aftercall.postcall.store import begin, finish

HANDS = 24  # steps that mostly wait for a model's answer
# holds a call whose summary was made ahead until its other steps begin, in this process or
# another
AHEAD = "ahead"
HELD_S = 10.0
# steps that mostly want a processor, and there is one lock of the interpreter for all of them
OWN_HANDS = 4
T = TypeVar("T")

log = get_logger("postcall")


@dataclass(frozen=True)
class Shift:
    office: Office
    crew: Crew
    clerk: GroupCommitter

    @classmethod
    def of(cls, office: Office) -> "Shift":
        return cls(
            office, Crew(hands_for(office.desk.reader)), GroupCommitter(office.desk.database)
        )

    def end(self) -> None:
        self.crew.close()
        self.clerk.close()

    async def take(
        self, call_id: str, names: Sequence[str], number: int, *, again: bool = False
    ) -> dict[str, float]:
        """Take steps of a call, for the so-manieth time; which of them should be taken again,
        and after how many seconds.

        One step's failure never stops another. What is raised is the database's: then it was
        not recorded how some step ended.
        """
        now = self.office.desk.clock.now()
        begun = await self.clerk.write(
            lambda connection: begin(connection, call_id, names, now, again=again)
        )
        fault_point("postcall.after_begin")
        begun.sort(key=LAST.__contains__)
        self.office.hold(call_id, begun)
        try:
            pauses = await self._take_begun(
                call_id, begun, number, is_repeat=len(begun) < len(names)
            )
        finally:
            for name in [*begun, AHEAD]:
                self.office.let_go(call_id, name)
        return {
            name: pause_s
            for name, pause_s in zip(begun, pauses, strict=True)
            if pause_s is not None
        }

    @property
    def sums_up_ahead(self) -> bool:
        return self.office.desk.reader.name == RULES

    async def sum_up_ahead(self, call_ids: Sequence[str]) -> None:
        """Summaries of calls that ended together, all at once and before the engine hears of
        them: it is slower than they are.

        For rules, which take milliseconds; who asks a model pays for each answer, and must not
        ask in two processes at once. What a crash, an error or another process leaves undone is
        done by the workflow.
        """
        for call_id in call_ids:
            self.office.hold(call_id, [AHEAD])
            asyncio.get_running_loop().call_later(HELD_S, self.office.let_go, call_id, AHEAD)
        await self._in_thread(FIRST, partial(sum_up_together, self.office, call_ids))

    async def take_left_behind(self, call_id: str) -> dict[str, float]:
        """What the summary had left behind, once it has come after all."""
        names = await asyncio.to_thread(self.office.left_behind, call_id)
        fault_point("step.after_late_summary")
        return await self.take(call_id, names, 1, again=True) if names else {}

    async def _take_begun(
        self, call_id: str, begun: list[str], number: int, *, is_repeat: bool
    ) -> list[float | None]:
        try:
            call = await self._in_thread(FIRST, partial(self._read, call_id, is_repeat=is_repeat))
        except Exception as error:  # noqa: BLE001 - the edge of all its steps: without the call there is none
            return [await self._put_off_or_give_up(call_id, name, number, error) for name in begun]
        summary = asyncio.Event()
        if FIRST not in begun:
            summary.set()
        pauses = await _all(
            self._take_in_order(call, name, number, summary) for name in begun if name not in LAST
        )
        return pauses + await _all(
            self._take_one(call, name, number) for name in begun if name in LAST
        )

    def _read(self, call_id: str, *, is_repeat: bool) -> Call:
        call = self.office.read(call_id)
        if is_repeat and self.office.steps.with_secrets(
            [call_id]
        ):  # a crash may have come between a step's end and this
            self.office.round_off(call)
        return call

    async def _take_in_order(
        self, call: Call, name: str, number: int, summary: asyncio.Event
    ) -> float | None:
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

            def record(connection: Connection) -> bool:
                finish(connection, call.id, name, outcome, now)
                return True

            await self._record_and_round_off(call, name, record)
        except Exception as error:  # noqa: BLE001 - the edge of a step: it is recorded, shown, and can be run again
            return await self._put_off_or_give_up(call.id, name, number, error)
        return None

    async def _record_and_round_off(
        self, call: Call, name: str, record: Callable[[Connection], bool]
    ) -> None:
        """Whether there is something to hide is looked up when the end is on record: what is
        found later hides what was written before.
        """
        is_due = name == FIRST and self.office.desk.embedder is not None

        def has_more(is_new: bool) -> bool:
            return is_new and (is_due or bool(self.office.steps.with_secrets([call.id])))

        is_left = await self.clerk.write(record, has_more)
        fault_point("postcall.after_finish")
        if is_left:  # the engine takes the step for done only after this
            await self._in_thread(FIRST, partial(self.office.round_off, call, name))

    async def _put_off_or_give_up(
        self, call_id: str, name: str, number: int, error: Exception
    ) -> float | None:
        ours = to_step_error(error, call=call_id, step=name)
        pause_s = pause_after(number, ours.retry_after_s) if ours.retryable else None
        if pause_s is None:
            log.warning("a step failed", call=call_id, step=name, error=ours.code)
            await asyncio.to_thread(self.office.give_up, call_id, name, str(ours))
        else:
            await asyncio.to_thread(self.office.put_off, call_id, name, str(ours), pause_s)
        return pause_s

    async def _in_thread(self, name: str, job: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self.crew.submit(0 if name == FIRST else 1, job))


async def _all(takings: Iterable[Coroutine[None, None, T]]) -> list[T]:
    """Wait for every one, also when one of them raises: none goes on behind the back of whoever
    tries again.
    """
    ended = await asyncio.gather(*takings, return_exceptions=True)
    for result in ended:
        if isinstance(result, BaseException):
            raise result
    return [result for result in ended if not isinstance(result, BaseException)]


def hands_for(reader: Reader) -> int:
    return OWN_HANDS if reader.name == RULES else HANDS
