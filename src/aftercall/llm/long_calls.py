"""Long calls: turns cut into pieces, calls read in windows and in a process of their own.

The time that a pattern takes may grow with the square of the text it looks at, and Python's
`re` lets no other thread run meanwhile. Bounded pieces make the time of a reading grow with the
length of the call, and keep each match short.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from threading import Lock, Thread
from typing import TypeVar

from aftercall.english.text import cut_text
from aftercall.log import get_logger
from aftercall.model.calls import Call, Turn
from aftercall.model.reading import (
    FactDraft,
    Identity,
    Profile,
    Promise,
    Reading,
    Request,
    RequestsReading,
    UnclearRequest,
    WithdrawnRequest,
)

MAX_WINDOW_CHARS = 30_000  # half an hour of speech
MAX_WINDOW_TURNS = 1_000
MAX_CARRIED_CHARS = 5_000
Cited = TypeVar("Cited", Request, UnclearRequest, WithdrawnRequest, Promise, FactDraft)


def cut_turns(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Each turn, or its pieces under the same number."""
    for turn in turns:
        for piece in cut_text(turn.text):
            is_whole = len(piece) == len(turn.text)
            yield turn if is_whole else turn.model_copy(update={"text": piece})


@dataclass(frozen=True)
class CutCall:
    """A call whose long turns are pieces, numbered as turns of their own."""

    call: Call
    seqs: tuple[int, ...]
    """The turn of each piece."""

    @classmethod
    def from_call(cls, call: Call) -> "CutCall":
        pieces = list(cut_turns(call.turns))
        seqs = tuple(piece.seq for piece in pieces)
        if len(pieces) > len(call.turns):
            numbered = (
                piece.model_copy(update={"seq": seq})
                for seq, piece in enumerate(pieces, 1)
            )
            call = call.model_copy(update={"turns": tuple(numbered)})
        return cls(call, seqs)

    def cite_turns(self, reading: Reading) -> Reading:
        """The reading with the turns of the call instead of the pieces."""
        if len(set(self.seqs)) == len(self.seqs):
            return reading
        return reading.model_copy(
            update={
                "requests": self._cite(reading.requests),
                "unclear": self._cite(reading.unclear),
                "withdrawn": self._cite(reading.withdrawn),
                "promises": self._cite(reading.promises),
                "facts": self._cite(reading.facts),
            }
        )

    def _cite(self, items: tuple[Cited, ...]) -> tuple[Cited, ...]:
        return tuple(
            item.model_copy(
                update={"turns": tuple(dict.fromkeys(map(self._seq, item.turns)))}
            )
            for item in items
        )

    def _seq(self, piece: int) -> int:
        return self.seqs[piece - 1]


def split_windows(turns: Sequence[Turn]) -> list[tuple[Turn, ...]]:
    """Whole turns in windows that a reader can take at once."""
    windows: list[list[Turn]] = [[]]
    size = 0
    for turn in turns:
        is_full = size + len(turn.text) > MAX_WINDOW_CHARS
        if windows[-1] and (is_full or len(windows[-1]) >= MAX_WINDOW_TURNS):
            windows.append([])
            size = 0
        windows[-1].append(turn)
        size += len(turn.text)
    return [tuple(window) for window in windows]


def read_in_windows(call: Call, read: Callable[[Call], Reading]) -> Reading:
    """One reading of all windows, without a summary.

    A window is read together with the turns of the last requests before it, so that a caller
    can still change them or call them off.
    """
    windows = split_windows(call.turns)
    if len(windows) == 1:
        return read(call)
    turns = {turn.seq: turn for turn in call.turns}
    parts: list[Reading] = []
    cited: set[int] = set()
    for window in windows:
        carried = _pick_last([turns[seq] for seq in sorted(cited)])
        part = read(call.model_copy(update={"turns": (*carried, *window)}))
        parts.append(_keep_citing(part, {turn.seq for turn in window}))
        cited = {turn.seq for turn in carried}
        cited |= {seq for request in part.requests for seq in request.turns}
    return merge_readings(parts)


def _pick_last(turns: Sequence[Turn]) -> list[Turn]:
    picked: list[Turn] = []
    room = MAX_CARRIED_CHARS
    for turn in reversed(turns):
        room -= len(turn.text)
        if room < 0:
            break
        picked.insert(0, turn)
    return picked


def _keep_citing(reading: Reading, seqs: set[int]) -> Reading:
    """Without what rests on carried turns alone: the window before has told it."""

    def keep(items: tuple[Cited, ...]) -> tuple[Cited, ...]:
        return tuple(item for item in items if not seqs.isdisjoint(item.turns))

    return reading.model_copy(
        update={
            "requests": keep(reading.requests),
            "unclear": keep(reading.unclear),
            "withdrawn": keep(reading.withdrawn),
            "promises": keep(reading.promises),
            "facts": keep(reading.facts),
        }
    )


def merge_readings(parts: Sequence[Reading]) -> Reading:
    asked = merge_asked(
        RequestsReading(
            requests=part.requests,
            unclear=part.unclear,
            withdrawn=part.withdrawn,
            promises=part.promises,
        )
        for part in parts
    )
    return Reading(
        language=parts[0].language,
        summary="",
        profile=merge_profiles([part.profile for part in parts]),
        identity=merge_identities([part.identity for part in parts]),
        requests=asked.requests,
        unclear=asked.unclear,
        withdrawn=asked.withdrawn,
        promises=asked.promises,
        facts=merge_facts(part.facts for part in parts),
    )


def merge_profiles(parts: Sequence[Profile]) -> Profile:
    """The last word counts; notes add up."""
    merged: dict[str, str] = {}
    for part in parts:
        merged |= {name: value for name, value in part.model_dump().items() if value}
    for name in ("notes", "context"):
        values = [value for part in parts if (value := getattr(part, name))]
        if values:
            merged[name] = " ".join(dict.fromkeys(values))
    return Profile(**merged)


def merge_identities(parts: Sequence[Identity]) -> Identity:
    """The first name wins: an agent introduces itself at the beginning."""
    merged: dict[str, str] = {}
    for part in reversed(parts):
        merged |= {name: value for name, value in part.model_dump().items() if value}
    return Identity(**merged)


def merge_asked(parts: Iterable[RequestsReading]) -> RequestsReading:
    """Of requests with the same title the last counts, and cites the turns of all."""
    requests: dict[str, Request] = {}
    unclear: dict[str, UnclearRequest] = {}
    withdrawn: list[WithdrawnRequest] = []
    promises: dict[str, Promise] = {}
    for part in parts:
        for called_off in part.withdrawn:
            requests.pop(_fold(called_off.title), None)
            unclear.pop(_fold(called_off.title), None)
        for item in part.unclear:
            unclear.setdefault(_fold(item.title), item)
        withdrawn += part.withdrawn
        for request in part.requests:
            known = requests.get(_fold(request.title))
            turns = {*known.turns, *request.turns} if known else ()
            requests[_fold(request.title)] = (
                request.model_copy(update={"turns": tuple(sorted(turns))})
                if known
                else request
            )
        for promise in part.promises:
            promises.setdefault(_fold(promise.title), promise)
    return RequestsReading(
        requests=tuple(requests.values()),
        unclear=tuple(unclear.values()),
        withdrawn=tuple(withdrawn),
        promises=tuple(promises.values()),
    )


def merge_facts(parts: Iterable[Sequence[FactDraft]]) -> tuple[FactDraft, ...]:
    facts: dict[str, FactDraft] = {}
    for part in parts:
        for fact in part:
            facts.setdefault(_fold(fact.text), fact)
    return tuple(facts.values())


def _fold(title: str) -> str:
    return " ".join(title.casefold().split()).rstrip(".!?")


MIN_LONG_CALL_CHARS = 20_000
NICENESS = 5  # the process with the audio of live calls goes first

log = get_logger("reading")


class ReadingProcess:
    """Reads long calls in a process of its own, so that audio is not disturbed."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._lock = Lock()
        self._one_at_a_time = (
            Lock()
        )  # readings side by side would only slow the audio down

    def read(self, job: Callable[[Call], Reading], call: Call) -> Reading:
        """Reads a long call in the process, a short one in this thread.

        A call whose process dies is read in this thread; the next one gets a new process.
        """
        if sum(len(turn.text) for turn in call.turns) >= MIN_LONG_CALL_CHARS:
            try:
                return self._submit(job, call).result()
            except BrokenProcessPool:
                log.warning("the process that reads long calls has died")
                self.close()
        with self._one_at_a_time:
            return job(call)

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def _submit(self, job: Callable[[Call], Reading], call: Call) -> Future[Reading]:
        with self._lock:
            if self._pool is None:
                self._pool = ProcessPoolExecutor(
                    max_workers=1,
                    # a fork would copy the locks of our threads
                    mp_context=multiprocessing.get_context("spawn"),
                    initializer=_prepare_process,
                )
            return self._pool.submit(job, call)


def _prepare_process() -> None:
    os.nice(NICENESS)
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C hits the group; the app ends us
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """An executor's process would wait for ever for work from a parent that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
