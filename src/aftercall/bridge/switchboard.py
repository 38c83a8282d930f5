"""Calls of carriers that listen and speak themselves, and ask over HTTP, one question a turn.

Questions arrive twice and late; a repeated one gets the same answer. On Postgres each question may
reach another process: it takes the call, reads what was said so far, and offers the call again
when it has answered (`journal/handover.py`). A question about a call that is not live anywhere
(the server was restarted in the middle of it) opens a new leg that continues the conversation.

While the database is away, processes know nothing of each other. Each keeps what it hears as a leg
of its own. A question's number only grows, whoever asks it: a higher one is never a repeat. When
the database is back, the call goes on in one of the legs.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from weakref import WeakValueDictionary

from aftercall.bridge import state
from aftercall.bridge.caller_tracker import WRITE_TIMEOUT_S
from aftercall.bridge.turn_call import NOT_WRITTEN_END, TurnCall, TurnCallParts
from aftercall.clock import Clock
from aftercall.engine.voice import AgentReply
from aftercall.errors import AftercallError, CallElsewhere, Overloaded
from aftercall.journal.handover import TakenCall
from aftercall.journal.journal import Journal
from aftercall.journal.replay import INTERRUPTED, RESUMABLE_ENDS, make_leg
from aftercall.log import get_logger
from aftercall.model.calls import LiveCall, Turn

IDLE_TIMEOUT_S = 600.0
OFFER_S = 60.0
"""So long after an answer the call waits for the caller's words, if its process dies."""
TAKE_TIMEOUT_S = 6.0  # another process answers the turn before
TAKE_INTERVAL_S = 0.05
LATE_TAKE_S = 4.0  # then the database is away: the turn is answered without it
MAX_SILENT_TURNS = 3
STILL_THERE = AgentReply(state.STILL_THERE)
SAY_AGAIN = AgentReply("I'm sorry, could you say that again?")
GOODBYE = AgentReply("Goodbye!", ends_call=True)
SILENT_GOODBYE = AgentReply(state.SILENT_GOODBYE, ends_call=True)

log = get_logger("bridge")


@dataclass
class PhoneLine:
    """One call. `turn` is the number of the question that is open."""

    call: TurnCall
    last_used_s: float
    turn: int = 0
    silences: int = 0
    last_reply: AgentReply = STILL_THERE
    notice: str = ""
    """The key of the notice that was answered last."""
    is_offered: bool = False
    """Whether any process may answer the next question."""


@dataclass(frozen=True)
class SpokenReply:
    """What the caller hears, and the number that their next words must carry."""

    reply: AgentReply
    turn: int


MakeCall = Callable[[str], LiveCall]


class Switchboard:
    def __init__(self, parts: TurnCallParts, clock: Clock, source: str) -> None:
        self._parts = parts
        self._journal = parts.journal
        self._handovers = parts.journal.handovers
        self._outage = parts.journal.outage
        self._clock = clock
        self._source = source
        self._lines: dict[str, PhoneLine] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._late_offers: set[asyncio.Task[str | None]] = set()

    async def ring(self, sid: str, make_call: MakeCall) -> SpokenReply:
        """A call begins. A ring that comes twice is answered once."""
        await self._sweep()
        try:
            async with self._hold(sid) as line:
                if line is not None:
                    return SpokenReply(line.last_reply, line.turn)
                return await self._open_line(sid, make_call)
        except CallElsewhere:
            return SpokenReply(STILL_THERE, 0)

    def current_turn(self, sid: str) -> int | None:
        """The number of the open question; None for a call that is unknown here."""
        line = self._lines.get(sid)
        return None if line is None else line.turn

    async def answer_turn(
        self,
        sid: str,
        turn: int | None,
        text: str,
        confidence: float | None,
        make_call: MakeCall,
        notice: str = "",
    ) -> SpokenReply:
        """The caller's answer to question `turn`, or to the open one. Silence is an answer.

        Words that carry the key of the last `notice` are a repeat, and so is an answer to a
        question before the open one. A higher number is an answer to another process, which this
        one could not hear of.
        """
        if turn is not None:
            notice = notice or f"turn {turn}"
        asked = turn or 0
        try:
            async with self._hold(sid) as line:
                if line is None:
                    return await self._open_line(
                        sid, make_call, turn, text, confidence, notice
                    )
                is_old = turn is not None and turn < line.turn
                is_repeated = is_old or notice == line.notice != ""
                if line.call.end_reason is not None and not is_repeated:
                    await self.keep_words(sid, text, confidence, notice)
                if is_repeated or line.call.end_reason is not None:
                    return SpokenReply(line.last_reply, line.turn)
                line.turn = max(line.turn, asked) + 1
                line.notice = notice
                reply = await self._answer(line, text, confidence)
                return self._record_reply(line, reply)
        except CallElsewhere:
            log.warning("a caller must say it again: another process has the call")
            await self.keep_words(sid, text, confidence, notice)
            return SpokenReply(SAY_AGAIN, asked)

    async def keep_words(
        self, sid: str, text: str, confidence: float | None, notice: str
    ) -> None:
        """Of a call that is over, or that another process has, which does not hear them.

        A webhook that comes again is known by its notice and its words.
        """
        if not text.strip():
            return
        said = Turn(
            seq=1,
            speaker="caller",
            text=text,
            at=self._clock.now(),
            confidence=confidence,
        )
        store = partial(self._store_words, sid, said, f"{notice} {text}")
        try:
            await self._outage.ask(WRITE_TIMEOUT_S, store)
        except AftercallError as error:
            log.warning("words not kept", error=error.code)

    def _store_words(self, sid: str, said: Turn, key: str) -> None:
        """As an addendum after the seal, as a leg of its own before."""
        last = self._handovers.find_last_leg(self._source, sid)
        if last is None:
            return
        row, _ = last
        if row.archive_name is None:
            self._journal.ingest(make_leg(row.live, [said], key))
            return
        _, late = self._journal.archive.read(row.archive_name)
        if said.text not in [turn.text for turn in late]:
            said = said.model_copy(update={"seq": row.turn_count + 1})
            self._journal.add_addendum(row, [said])

    async def end(self, sid: str, reason: str) -> bool:
        """The carrier reports that the call is over. A second report changes nothing.

        False if another process may have the call.
        """
        if line := self._lines.get(sid):
            await line.call.end(reason)
            line.last_reply = GOODBYE
        return line is not None and not self._handovers.is_shared

    def forget(self, sid: str) -> None:
        """Another process has the call now."""
        self._lines.pop(sid, None)

    async def rejoin_calls(self) -> None:
        """The database is back: of each call one leg goes on, which any process may take.

        The leg that was imported first has the carrier's sid. It is offered. The leg of another
        process is sealed, and a line whose call was taken meanwhile is forgotten. A call that is
        answered at this moment has its turn at the next look.
        """
        if not self._handovers.is_shared or self._outage.is_active:
            return
        for sid, line in list(self._lines.items()):
            lock = self._locks.setdefault(sid, asyncio.Lock())
            if lock.locked() or line.call.end_reason or line.call.is_spilling:
                continue
            async with lock:
                if line.call.is_elsewhere:
                    self.forget(sid)
                elif line.call.is_second:
                    self.forget(sid)
                    await line.call.end(INTERRUPTED)
                elif not line.is_offered:
                    await self._offer(line)

    @asynccontextmanager
    async def _hold(self, sid: str) -> AsyncIterator[PhoneLine | None]:
        """The line of a call, which is nobody else's until the turn is answered."""
        async with self._locks.setdefault(sid, asyncio.Lock()):
            line = self._lines.get(sid)
            is_shared = self._handovers.is_shared and await self._await_import(line)
            try:
                yield await self._take_line(sid, line) if is_shared else line
            finally:
                if is_shared:
                    await self._offer(self._lines.get(sid))

    async def _await_import(self, line: PhoneLine | None) -> bool:
        """False while the database is away, or does not have the words of the call yet.

        A call that is taken while its words are only on our disk would be written twice.
        """
        until_s = self._clock.monotonic() + TAKE_TIMEOUT_S
        while not self._outage.is_active:
            if line is None or not line.call.is_spilling:
                return True
            if self._clock.monotonic() > until_s:
                return False
            await self._clock.sleep(TAKE_INTERVAL_S)
        return False

    async def _take_line(self, sid: str, known: PhoneLine | None) -> PhoneLine | None:
        """Waits while another process answers the turn before."""
        until_s = self._clock.monotonic() + TAKE_TIMEOUT_S
        while True:
            take = partial(self._handovers.take, self._source, sid)
            try:
                taken = await self._outage.ask(LATE_TAKE_S, take, self._give_back)
            except CallElsewhere:
                if self._clock.monotonic() > until_s:
                    raise
                await self._clock.sleep(TAKE_INTERVAL_S)
            except AftercallError as error:
                log.warning("the database did not say who has a call", error=error.code)
                return known
            else:
                break
        if known is not None:
            known.is_offered = False
        if taken is None or (known and taken.row.owner == self._handovers.process):
            return None if known and known.call.is_elsewhere else known
        if known is not None and known.call.call.id != taken.row.live.id:
            await known.call.end(INTERRUPTED)  # a leg of the time without the database
        line = self._lines[sid] = await self._restore_line(taken)
        return line

    def _give_back(self, taking: asyncio.Task[TakenCall | None]) -> None:
        """A call that was taken too late: the turn has been answered without it."""
        if taking.cancelled() or taking.exception():
            return
        if taken := taking.result():
            offer = (taken.row.live.id, OFFER_S, taken.notice or "")
            offering = asyncio.to_thread(self._handovers.offer, *offer)
            self._late_offers.add(task := asyncio.create_task(offering))
            task.add_done_callback(self._late_offers.discard)

    async def _restore_line(self, taken: TakenCall) -> PhoneLine:
        """Each answer is one turn of the agent, after the greeting."""
        live = taken.row.live
        recorder = await asyncio.to_thread(self._journal.adopt, live)
        call = TurnCall(self._parts, live)
        turns = await call.restore(recorder)
        line = PhoneLine(call, self._clock.monotonic(), notice=taken.notice or "")
        for turn in turns:
            if turn.speaker == "agent":
                line.turn += 1
                line.last_reply = AgentReply(turn.text)
            is_prompt = turn.text == STILL_THERE.text
            line.silences = line.silences + 1 if is_prompt else 0
        line.turn = max(line.turn - 1, 0)
        return line

    async def _offer(self, line: PhoneLine | None) -> None:
        """From here on the caller's next words may come to any process."""
        if line is None or line.call.end_reason is not None:
            return
        call_id = line.call.call.id
        offer = partial(self._handovers.offer, call_id, OFFER_S, line.notice)
        try:
            reason = await self._outage.ask(WRITE_TIMEOUT_S, offer)
        except AftercallError as error:
            log.warning(
                "only this process can answer the caller",
                call=call_id,
                error=error.code,
            )
        else:
            line.is_offered = True
            if reason is not None:
                await line.call.end(reason)

    async def _open_line(
        self,
        sid: str,
        make_call: MakeCall,
        turn: int | None = None,
        text: str = "",
        confidence: float | None = None,
        notice: str = "",
    ) -> SpokenReply:
        """The first leg of a call, or another one where its process is gone.

        Who answers question `turn` has been greeted, maybe by a process that cannot be asked.
        """
        find = partial(self._handovers.find_last_leg, self._source, sid)
        try:
            last = await self._outage.ask(WRITE_TIMEOUT_S, find)
        except AftercallError:  # the call begins without the database
            last = None
        if last is not None:
            row, number = last
            log.warning("a call continues that this process does not know")
            if row.end_reason not in (None, *RESUMABLE_ENDS):
                await self.keep_words(sid, text, confidence, notice)
                return SpokenReply(GOODBYE, 0)
            make_leg = make_call(f"{sid}.{number + 1}")
        else:
            make_leg = make_call(sid)
        call = TurnCall(self._parts, make_leg)
        line = PhoneLine(call, self._clock.monotonic(), notice=notice)
        self._lines[sid] = line
        is_greeted = last is None and (turn is not None or bool(text.strip()))
        if is_greeted:
            reply = await call.connect() or STILL_THERE
        else:
            reply = await call.start()
        if call.end_reason == NOT_WRITTEN_END and self._handovers.is_shared:
            # the same webhook may have come to another process, which was first
            taken = await self._take_line(sid, None)
            if taken is not None:
                return SpokenReply(taken.last_reply, taken.turn)
        is_answer = is_greeted or bool(text.strip())
        line.turn = int(is_answer) if turn is None else turn + 1
        if call.end_reason is None and is_answer:
            reply = await self._answer(line, text, confidence)
        return self._record_reply(line, reply)

    async def _answer(
        self, line: PhoneLine, text: str, confidence: float | None
    ) -> AgentReply:
        if text.strip():
            line.silences = 0
            return await line.call.answer(text, confidence)
        if not (self._handovers.is_shared and self._outage.is_active):
            line.silences += 1  # else the caller may be speaking to another process
        is_gone = line.silences >= MAX_SILENT_TURNS
        return await line.call.say(SILENT_GOODBYE if is_gone else STILL_THERE)

    def _record_reply(self, line: PhoneLine, reply: AgentReply) -> SpokenReply:
        line.last_reply = reply
        line.last_used_s = self._clock.monotonic()
        return SpokenReply(reply, line.turn)

    async def _sweep(self) -> None:
        """Ended calls stay for a while, for late repeats of their webhooks.

        A call whose end was never reported is ended.
        """
        now_s = self._clock.monotonic()
        for sid, line in list(self._lines.items()):
            if now_s - line.last_used_s > IDLE_TIMEOUT_S:
                await line.call.end("abandoned")
                self._lines.pop(sid, None)


class CallIntake:
    """Whether the phone is answered. A process that is to stop lets its live calls finish."""

    def __init__(self, journal: Journal, clock: Clock, finish_s: float) -> None:
        """After `finish_s` the process does not wait for calls any longer."""
        self._journal = journal
        self._clock = clock
        self._finish_s = finish_s
        self._closed_s: float | None = None

    @property
    def is_open(self) -> bool:
        return self._closed_s is None

    def close(self) -> None:
        log.info("no new calls", live=len(self._journal.live_recorders))
        self._closed_s = self._clock.monotonic()

    def refuse_if_closed(self) -> None:
        """For a program that begins a call: it is told to try again, and finds another process."""
        if not self.is_open:
            raise Overloaded(
                "this process is about to stop; another one takes the call"
            )

    def is_finished(self) -> bool:
        """Whether the process may stop: its calls are over, or have had their time.

        What is live then is sealed; an agent elsewhere goes on with its call in another leg.
        """
        if self._closed_s is None:
            return False
        is_late = self._clock.monotonic() - self._closed_s >= self._finish_s
        return is_late or not self._journal.live_recorders
