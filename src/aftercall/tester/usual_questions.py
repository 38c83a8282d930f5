"""What agents ask every caller, and how a caller answers without inventing a fact.

The script's own answers come first. A question that neither knows is a gap in the script: the
caller says so, and the run says so.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from aftercall.tester.phrases import find_any, questions_of
from aftercall.tester.slots import Slots

STILL_THERE = ("still there|are you there|can you hear me|still on the line",)
CONFIRM = (
    (
        r"/\b(?:is that (?:correct|right|ok|okay|all right|fine)|does that (?:work|sound|suit)"
        r"|(?:right|correct|yes|okay|ok|alright|all right|yeah)\?)/"
    ),
    (
        r"/\b(?:shall i|should i|shall we|would you like|do you want|want me to|can i go ahead"
        r"|may i go ahead|ready to|good to go|sound (?:good|right|ok)|have i got that|did i get)\b/"
    ),
    r"/\b(?:would that|will that|is this|does this) (?:work|suit|be|okay|correct|right)/",
    r"/\b(?:to confirm|just to be sure|just checking|let me confirm)\b/",
)
_ASKS_SLOT = (
    r"/\b(?:which|what|any|preferred|best|good|particular) (?:\w+ )?(?:day|date|time|slot)s?\b/",
    r"/^\W*(?:and )?when\?$/",
    r"/\bwhen (?:would|do|should|shall|can|could|may|are|were|is|will|did|might)\b/",
    r"/\b(?:which|what|at what|on what) (?:hour|o'clock|morning|afternoon|weekday)\b/",
    r"/\b(?:morning|afternoon|evening)s? or (?:\w+ )?(?:morning|afternoon|evening)/",
    (
        r"/\b(?:prefer|works? (?:best )?for you|suits? you|convenient|what time|day and time"
        r"|days? and times?)\b/"
    ),
)
_OFFERS = (
    (
        r"/\b(?:taken|full|booked up|fully booked|not available|unavailable|no openings|instead"
        r"|how about|what about|next available|earliest|closest|nearest|we have|i have|there's"
        r"|there is|free|open(?:ing)?s?|could do|can do|can offer|offer you|available)\b/"
    ),
)
_CHOICE = re.compile(r"\bor\b|\bwhich (?:one|of)|\beither\b")
_USUAL: tuple[tuple[str, str], ...] = (
    (
        (
            r"been (?:here|to|with|seen|in)\b|(?:new|existing|returning|current|registered)"
            r" (?:patient|customer|client|caller)|first (?:visit|time)|visited|have you (?:ever )?"
            r"(?:called|used|booked)|seen (?:by )?us|on file|in our system"
        ),
        "I have been there before.",
    ),
    (
        (
            r"\bfor (?:yourself|someone else|somebody else|another)|is (?:this|it|that) for you\b"
            r"|on behalf|are you the patient|calling for"
        ),
        "It's for me.",
    ),
    (
        (
            r"(?:number|line) (?:that )?(?:you're|you are) calling|(?:this|same) number"
            r"|number (?:on|we have)|reach you (?:at|on) (?:this|the)"
        ),
        "Yes, this number is fine.",
    ),
    (
        (
            r"(?:which|any|preferred|particular|specific|usual) (?:doctor|provider|dentist|stylist"
            r"|physician|therapist|clinician|staff|location|office|branch)|anyone in particular"
            r"|preference"
        ),
        "I have no preference.",
    ),
    (
        r"\b(?:emergency|urgent|life.threatening|chest pain|severe)\b",
        "No, it's not urgent.",
    ),
    (
        r"\b(?:recorded|recording|consent|privacy|terms|hold|wait|a moment|transfer)\b",
        "Yes, that's fine.",
    ),
    (
        (
            r"\b(?:shall|should|would|want|like|may i|can i|could i|okay|interested|sign you)\b.*"
            r"\b(?:text|email|e-mail|sms|reminder|confirmation|newsletter|survey|feedback)\b"
        ),
        "No, thank you, that's not needed.",
    ),
    (r"\bhow are you\b|how's (?:it going|your day)", "I'm fine, thank you."),
    (
        (
            r"\b(?:did i|have i) (?:hear|get|understand|catch)|do you mean|you mean\b|you said\b"
            r"|you're (?:calling|looking|asking)"
        ),
        "Yes, that's right.",
    ),
)
_ASKS_REASON = re.compile(
    r"\b(?:reason|(?:what's|what is|what was) (?:it|this|that|your (?:call|visit)|the (?:call|visit"
    r"|matter))\b.{0,12}\b(?:about|for|regarding|concerning)|brings you|calling about"
    r"|(?:how|what) (?:can|may|could|shall) (?:i|we) (?:help|do|get|arrange|assist|serve)\b"
    r"|what (?:would|do|did) you (?:need|want|like|wish|call)|tell me (?:more|about)|repeat"
    r"|say that again|pardon|catch that|come again|didn't (?:get|hear)|rephrase|for what)\b"
)
# a short question whether it may be so: "shall it be thus?", "agreed?"
_SO = re.compile(
    r"^\W*(?:and |so |then )?(?:shall|is|does|will|would|may) (?:it|that|this|we)\b(?:\W*\S+){0,4}$"
    r"|^\W*(?:agreed|settled|deal|fair|good|fine|shall we)\?$"
)
# a yes answers neither of these
_IS_OPEN = re.compile(
    r"\b(?:what|which|where|who|whom|whose|how (?:many|much|long|old|often|do))\b"
    r"|\bor\b(?! (?:not|something|so)\b)"
)
_USUAL_ANSWERS = tuple((re.compile(pattern), answer) for pattern, answer in _USUAL)


@dataclass(frozen=True)
class WantedSlot:
    """The day and time that the caller asked for last, in the script's words."""

    words: str
    slots: Slots


def answer_usual(
    text: str, asked: Slots, wanted: WantedSlot | None, reasons: Sequence[str]
) -> tuple[str, str] | None:
    """The kind of the answer and its words; None if nobody would know what to say.

    `asked` is the day and time that the agent named, `reasons` what the caller rang up for.
    """
    questions = " ".join(questions_of(text)).lower().replace("’", "'")
    if find_any(STILL_THERE, questions):
        return "here", "Yes, I'm here."
    if wanted is not None and (slot := _answer_slot(text, questions, asked, wanted)):
        return slot
    for pattern, answer in _USUAL_ANSWERS:
        is_yes = answer.startswith("Yes")
        if pattern.search(questions) and not (is_yes and _IS_OPEN.search(questions)):
            return "usual", answer
    is_confirming = find_any(CONFIRM, questions) or _SO.search(questions)
    if is_confirming and not _IS_OPEN.search(questions):
        return "yes", "Yes, please."
    if reasons and _ASKS_REASON.search(f"{questions} {text.lower()}"):
        return "reason", reasons[0]
    return None


def _answer_slot(
    text: str, questions: str, asked: Slots, wanted: WantedSlot
) -> tuple[str, str] | None:
    asks_which = find_any(_ASKS_SLOT, questions) is not None
    if not asked:
        return ("slot", f"{wanted.words}, please.") if asks_which else None
    if _CHOICE.search(questions):
        if asked.days & wanted.slots.days or asked.times & wanted.slots.times:
            return "slot", f"{wanted.words}, please."
        return "choice", "The first one, please."
    if find_any(CONFIRM, questions) or not asks_which:
        if _fits(asked, wanted.slots) or find_any(_OFFERS, text):
            return "yes", "Yes, please."
        return "correct", f"No, {wanted.words}."
    return "slot", f"{wanted.words}, please."


def _fits(asked: Slots, wanted: Slots) -> bool:
    fits_day = not asked.days or bool(asked.days & wanted.days)
    return fits_day and (not asked.times or bool(asked.times & wanted.times))
