"""The built-in receptionist: needs no key and no account, and is good at one job.

Greets, by name where it is known; takes messages and requests and confirms each in a sentence;
tells what the last call was about; says goodbye. It never claims that something has been done:
it takes down, the work comes after the call. And it says that it took something down only where
a request of the call holds it.
"""

import asyncio
import re
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo

from aftercall.clock import Clock
from aftercall.engine.session import AgentReply
from aftercall.llm.phrases import join, rephrase_title, speak_date, to_second_person
from aftercall.llm.reader import Reader
from aftercall.llm.rules.corrections import REPLACES, denies_number
from aftercall.llm.rules.withdrawals import find_call_off
from aftercall.model.briefing import Briefing
from aftercall.model.calls import Call
from aftercall.model.reading import Reading, Request
from aftercall.model.turns import Speaker, Turn

_CLOSING = re.compile(
    r"\b(?:good ?bye|bye|nothing else|that(?:'s| is| will be|'ll be) (?:all|it|everything)"
    r"|have a (?:good|nice|great) (?:day|one|evening|weekend))\b",
    re.IGNORECASE,
)
_NO = re.compile(
    r"\W*(?:no|nope|nah|no thanks|no thank you|i'm good|i'm fine|all good|not "
    r"today)\b[\w\s,.!']{0,40}",
    re.IGNORECASE,
)
_RECALL = re.compile(
    r"\b(?:last (?:time|call)|previous call|do you remember|remember (?:me|what|our)"
    r"|what did (?:we|i)|where (?:were|did) we|we talked about)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"\?\s*$|^\s*(?:what|when|where|who|why|how|is|are|do|does|did|can|could|will|would)\b",
    re.IGNORECASE,
)
_HELLO = re.compile(
    r"\W*(?:(?:hi|hello|hey|good (?:morning|afternoon|evening|day))\b(?: again| there)?\W*)*"
    r"(?:(?:it's|it is|this is|i'm|i am|my name is) (?P<name>[\w'-]+)(?: [\w'-]+){0,2})?\W*",
    re.IGNORECASE,
)
_ASKED = re.compile(r"^.{1,80}? asked for: ")
MAX_QUESTION_CHARS = 200
MAX_WORK_ITEMS = 3  # pieces of finished work in one breath
_MORE = ("Is there anything else?", "Anything else?", "What else can I take down?")


class Receptionist:
    def __init__(self, reader: Reader, clock: Clock, zone: tzinfo = UTC) -> None:
        self._reader = reader
        self._clock = clock
        self._zone = zone

    async def connect(self, briefing: Briefing) -> "ReceptionistSession":
        return ReceptionistSession(briefing, self._reader, self._clock, self._zone)


class ReceptionistSession:
    def __init__(self, briefing: Briefing, reader: Reader, clock: Clock, zone: tzinfo) -> None:
        self._briefing = briefing
        self._reader = reader
        self._clock = clock
        self._zone = zone
        self._turns: list[Turn] = []
        self._known = Reading(language="en", summary="")
        self._asked_more = 0
        self._pick_up()

    async def greet(self) -> AgentReply:
        return self._say(self._briefing.first_words)

    async def answer(self, said: str) -> AgentReply:
        self._add("caller", said)
        before = self._known
        now = self._known = await asyncio.to_thread(
            self._read
        )  # audio of other calls passes meanwhile
        news = _describe_changes(before, now)
        if news:
            return (
                self._goodbye(news)
                if _CLOSING.search(said)
                else self._say(f"{news} {self._more()}")
            )
        if _RECALL.search(said):
            return self._say(f"{self._recall()} {self._more()}")
        if _CLOSING.search(said) or (
            self._asked_more and _NO.fullmatch(said) and not denies_number(said)
        ):
            return self._goodbye()
        if polite := self._acknowledge(said, before, now):
            return self._say(f"{polite} {self._more()}")
        return self._respond(said, now)

    async def update_briefing(self, briefing: Briefing, *, is_another: bool) -> None:
        self._briefing = briefing
        if is_another:
            self._turns.clear()
            self._known = Reading(language="en", summary="")
            self._pick_up()

    async def close(self) -> None:
        return

    def replace_last_reply(self, said: str) -> None:
        """Somebody else spoke in our place: these are the words the caller heard."""
        self._turns[-1] = self._turns[-1].model_copy(update={"text": said})

    def lines(self) -> list[str]:
        """What was said so far, without our own last words."""
        return [
            f"[{turn.seq}] {turn.speaker.capitalize()}: {' '.join(turn.text.split())}"
            for turn in self._turns[:-1]
        ]

    def _pick_up(self) -> None:
        for turn in self._briefing.pick_up.turns if self._briefing.pick_up else ():
            self._add(turn.speaker, turn.text)
        if self._turns:
            self._known = self._read()

    def _acknowledge(self, said: str, before: Reading, now: Reading) -> str:
        """To a name or a greeting; empty if it is neither."""
        name = now.profile.spoken_name or self._briefing.spoken_name
        if now.profile.spoken_name and now.profile.spoken_name != before.profile.spoken_name:
            return f"Thank you, {name}."
        hello = _HELLO.fullmatch(said)
        if hello and (not hello["name"] or hello["name"].lower() in (name or "").lower().split()):
            return f"Hello, {name}." if name else "Hello."
        return ""

    def _respond(self, said: str, now: Reading) -> AgentReply:
        """To words that brought no request, change or withdrawal."""
        seq = self._turns[-1].seq
        if about := [
            rephrase_title(request.title) for request in now.requests if seq in request.turns
        ]:
            return self._say(f"I have taken that down: {join(about)}. {self._more()}")
        if (
            now.requests
            and (REPLACES.search(said) or denies_number(said))
            and not _QUESTION.search(said)
        ):
            return self._say("I could not change that. Please tell me once more, all of it.")
        if find_call_off(said):
            return self._say(f"I have nothing like that to cross out. {self._more()}")
        if not _QUESTION.search(said):
            return self._say(f"I see. {self._more()}")
        is_secret = any(fact.visibility == "secret" and seq in fact.turns for fact in now.facts)
        title = (
            "Answer a question of the caller"
            if is_secret
            else f"Question: {' '.join(said.split())}"
        )
        words = f"I can't answer that myself, but I have taken your question down. {self._more()}"
        return self._say(words, taken={"kind": "other", "title": title[:MAX_QUESTION_CHARS]})

    def _recall(self) -> str:
        if not self._briefing.recent:
            return "I have nothing from an earlier call of yours."
        last = self._briefing.recent[-1]
        work = [f"{to_second_person(told)}." for told in self._briefing.work[-MAX_WORK_ITEMS:]]
        return " ".join(
            [
                (
                    f"On {speak_date(last.at.astimezone(self._zone).date())} you called. "
                    f"{to_spoken_summary(last.summary)}"
                ),
                *work,
            ]
        )

    def _goodbye(self, news: str = "") -> AgentReply:
        name = self._known.profile.spoken_name or self._briefing.spoken_name
        thanks = f"Thank you for calling{f', {name}' if name else ''}. Goodbye!"
        return self._say(f"{news} {thanks}".strip(), ends_call=True)

    def _more(self) -> str:
        if not self._known.requests and not self._known.withdrawn and not self._asked_more:
            return "What can I do for you?"
        self._asked_more += 1
        return _MORE[(self._asked_more - 1) % len(_MORE)]

    def _say(
        self, text: str, *, ends_call: bool = False, taken: Mapping[str, str] | None = None
    ) -> AgentReply:
        self._add("agent", text)
        return AgentReply(text, ends_call, taken)

    def _add(self, speaker: Speaker, text: str) -> None:
        self._turns.append(
            Turn(seq=len(self._turns) + 1, speaker=speaker, text=text, at=self._now())
        )

    def _read(self) -> Reading:
        """What the call holds so far, by the same reader that reads it when it is over."""
        first, last = self._turns[0].at, self._turns[-1].at
        return self._reader.read(
            Call(
                source="live",
                sid="live",
                started_at=first,
                ended_at=max(first, last),
                turns=tuple(self._turns),
            )
        )

    def _now(self) -> datetime:
        last = self._turns[-1].at if self._turns else self._clock.now()
        return max(self._clock.now(), last)


def _describe_changes(before: Reading, now: Reading) -> str:
    """What this turn asked for, changed or called off, as one sentence; empty if nothing."""
    changed = [(request, _earlier(request, before, now)) for request in now.requests]
    fresh = [request for request, known in changed if known is None]
    moved = [
        request for request, known in changed if known is not None and _differs(request, known)
    ]
    gone = [
        item
        for item in now.withdrawn
        if item.title not in {other.title for other in before.withdrawn}
    ]
    sentences = []
    if fresh:
        sentences.append(f"I have taken down: {join([_confirm(request) for request in fresh])}.")
    if moved:
        sentences.append(f"I have changed that: {join([_confirm(request) for request in moved])}.")
    if gone:
        sentences.append(
            f"All right, I have crossed out: {join([rephrase_title(item.title) for item in gone])}."
        )
    return " ".join(sentences)


def _differs(request: Request, known: Request) -> bool:
    return (request.title, request.due) != (known.title, known.due)


def _earlier(request: Request, before: Reading, now: Reading) -> Request | None:
    """The same request as it stood before; a day put right may have changed its title, but not
    where it was first said.
    """
    titles = {other.title for other in now.requests}
    for known in before.requests:
        is_renamed = known.title not in titles and (known.kind, known.turns[:1]) == (
            request.kind,
            request.turns[:1],
        )
        if known.title == request.title or is_renamed:
            return known
    return None


def _confirm(request: Request) -> str:
    spoken = rephrase_title(request.title)
    if (
        request.due is None
        or str(request.due.day) in spoken
        or f"{request.due:%A}".lower() in spoken.lower()
    ):
        return spoken
    return (
        f"{spoken}, {'on' if request.kind in ('booking', 'reminder') else 'by'} "
        f"{speak_date(request.due)}"
    )


def to_spoken_summary(summary: str) -> str:
    """A stored summary as the agent would say it to the caller themself."""
    return to_second_person(_ASKED.sub("You asked for: ", " ".join(summary.split())))
