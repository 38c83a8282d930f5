"""Yes and no: how a caller takes what the agent has just put forward; and the agent's offers
themselves.
"""

from dataclasses import dataclass
from typing import Literal

from aftercall.llm.rules.cue import Cue
from aftercall.llm.rules.sentences import Clause, split_sentences
from aftercall.model.turns import Turn

Stance = Literal["yes", "no"]

_FILLER = (
    "(?:(?:oh|um+|uh+|er+m?|well|so|and|but|hm+|ah|okay|ok|right|actually|hang on|hold on"
    "|wait|like)[,.!? ]+)*"
)
_NO = Cue(
    f"^{_FILLER}(?:no(?!,? (?:problem|worries|trouble|rush|bother|hurry|doubt|dramas))(?! "
    f"[a-z]{(3,)} ?(?:then|either)?[,.!]?$)|nope|"
    rf"nah|not (?:really|now|today|necessary|"
    "needed|at the moment|yet|this time)|(?:please )?don['’]?t(?=[,.!]|$| (?:bother|worry|do "
    "(?:that|it)|"
    r"think so)\b)|i['’]m (?:good|okay|fine|all right)(?: thanks?)?\b|that['’]s (?:okay|"
    r"all right),? (?:thanks?|i)|"
    "that (?:won['’]?t|doesn['’]?t) work|i can['’]?t|never ?mind|leave it|maybe (?:later"
    "|some other|another|next)|"
    "i['’]ll (?:pass|think|have a think|let you know|see)|let me think|we['’]ll see|some "
    "other time|scratch|forget it|"
    r"rather not|i['’]d rather not|no need|not for me|too (?:early|late|much|expensive))\b",
)
_HOLD = Cue(r"\b(?:hang on|hold on|wait)[,.]? no\b|\bno,? (?:hang on|hold on|wait)\b")
_YES = Cue(
    f"^{_FILLER}(?:yes|yeah|yep|yup|yea|sure|okay|ok|please(?! (?:don|do not|stop|no))"
    "|perfect|great|fine|absolutely|"
    "definitely|of course|sounds (?:good|great|fine|perfect|lovely)|that (?:works|suits"
    "|would be|['’]?d be|sounds)|"
    "that['’]?(?:s|ll|d) (?:be )?(?:fine|good|great|perfect|right|correct|it|lovely|ideal"
    "|wonderful|brilliant)|"
    "go (?:ahead|for it)|do that|let['’]s do|let['’]s go|i['’]ll take (?:it|that|the)|please "
    "do|if you (?:could|would(?:n['’]?t mind)?|"
    "don['’]t mind|can)|why not|correct|exactly|uh huh|mm ?hm+|right|good|lovely|brilliant"
    "|wonderful|excellent|works for me|"
    "i['’]d (?:like|love|appreciate) that|by all means|cool|alright|all right|awesome|amazing"
    "|go on|fantastic|ideal|"
    r"thank you|thanks|might as well|you bet)\b",
)
_YES_AFTER_ALL = Cue(
    "^(?:oh|actually|well|um|uh|okay|wait)?[, ]*(?:yes|yeah|sure|go ahead|please do|go on"
    r"|why not)\b"
)
_YES_INSIDE = Cue(
    r"^[\w', ]{1,30}\b(?:yeah|yes|please|sounds good|works|(?:is|['’]s|are) (?:fine|good|great"
    "|perfect|okay|ok|lovely|ideal|better|best)|"
    "would be (?:great|good|fine|perfect|lovely|better|best)|(?<!no )(?<!not )(?<!so "
    ")(?<!too )(?:fine|good|great|perfect))[.!,]?(?: |$)",
)

_OFFER = Cue(
    r"\b(?:would you like|do you want|did you want|would you want|would you prefer|shall (?:i"
    "|we)|should (?:i|we)|want (?:me|"
    "us) to|would it help if (?:i|we)|may i|can i (?:also )?(?:send|book|put|add|set|offer"
    "|email|text|arrange|schedule|"
    r"get you|sign)|"
    "could i (?:send|book|put|add|set|offer|arrange)|would you be interested in|how about(?: "
    "(?:i|we))?|i (?:can|"
    "could)(?: also| certainly| absolutely)? (?!help|see|hear|do that|get that|imagine"
    "|confirm|understand|only|not|'t|"
    r"tell you)\w+|we (?:can|could)(?: also)? \w+|(?:someone|somebody|an? \w+|the \w+|he|she"
    "|they) (?:can|"
    r"could) (?:come|be|call|stop|drop|visit|look)|care for|interested in)\b(?P<act>.*)",
)
_OPEN_QUESTION = Cue(
    r"^(?:\w+,? )?(?:what|which|who|where|when|why|how (?:many|much|long|can|may|do|would"
    r"|should|is|are))\b|"
    r"\b(?:what (?:time|day|date|name|kind|size)|how (?:many|much|long))\b|\banything else\b|"
    r"\bhelp you\b|\bmorning or afternoon\b|\byour (?:full |last )?name\b|\bsomething else\b"
    r"|\bis there (?:a|an|any|anything|"
    r"something)\b|\bspell\b|\brepeat\b|\bhave your\b",
)
_STARTED = Cue(
    r"\b(?:i have|i['’]ve got|i see|we have|you have)\b.*\b(?:order|booking|appointment"
    "|reservation|request|start of|"
    r"you down for|you booked|you in for)\b(?P<act>.*)",
)
# After a line that dropped the agent says what it had taken down so far.
_RESUMED = Cue(
    r"\b(?:welcome back|(?:hello|hi) again|we (?:were|got) cut off|where were we)\b"
)
_SO_FAR = Cue(
    r"\b(?:i (?:have|had)|i['’](?:ve|d) got|we (?:have|had|were (?:doing|on)))\b(?: (?:down"
    "|you down for|noted))? (?P<act>.*)"
)
_RIGHT = Cue(r"\b(?:is that (?:right|correct)|correct|right|still want)\?")


_OFFER_HEAD = Cue(
    "^(?:would you (?:like|want|prefer|be interested in)|do you want|did you want|shall (?:i"
    "|we)|should (?:i|we)|want|"
    "would it help if (?:i|we)|may i|(?:can|could) i|how about|(?:i|we|someone|somebody|an? "
    r"\w+|the \w+|he|she|"
    r"they) (?:can|could)|care for|"
    "interested in)(?: (?:me|us|i|we))?(?: (?:to|also|certainly|absolutely|perhaps"
    r"|maybe))*(?: offer you)?\s+",
)
_ON_THE_CALL = Cue(
    "^(?:have (?:an?|your|the) (?:e-?mail|number|name|address|phone|reference|postcode|order"
    "|date|card)|start (?:a|the) (?:list|note)|"
    "keep|pay(?! for)|go ahead|stay|use|verify|provide|spell|leave (?:it|that)|hang on|come "
    "(?:back|along)|take (?:a look|that)|"
    "check(?! (?:you|me|us) in)|look(?! for (?:something|an?|the next))|explain|repeat|go "
    "(?:over|through)|read|tell you|hold|transfer|"
    r"connect|hear|see|know|"
    "wait|ask(?! (?:the|an?|your|our|him|her|them|someone|somebody|dr|for))|confirm|continue"
    "|proceed|help|understand|"
    r"speak|answer|try|do|be|fit|squeeze)\b",
)


_STATED = Cue(r"(?:i|we|someone|somebody|an? \w+|the \w+|he|she|they) (?:can|could)\b")


# "I can send a link. Shall I?": the question only repeats the offer before it.
_BARE_OFFER = Cue(
    "(?:so |and |then )*(?:shall|should|can|may) (?:i|we)(?: do (?:that|it|so))?(?: for "
    r"you)?\?|would (?:that|"
    r"it) (?:help|work|be \w+|suit)\b.*\?|would you like that\?",
)
_INSTEAD = Cue(r"\b(?:instead of|rather than)\b")


@dataclass(frozen=True, slots=True)
class Offer:
    seq: int
    act: str
    stands: bool = False
    """The agent reads out what is already booked."""
    stated: bool = False
    replaces: bool = False
    """It is offered in place of what the caller asked for."""


def stance(clauses: list[Clause]) -> Stance | None:
    """The last clear yes or no among the first clauses of a turn: people change their mind
    mid-breath.
    """
    found: Stance | None = None
    for index, clause in enumerate(clauses[:5]):
        if _HOLD.search(clause.text) or _NO.match(clause.text):
            found = "no"
        elif _YES.match(clause.text) or (index == 0 and _YES_INSIDE.match(clause.text)):
            found = (
                "yes" if found is None or _YES_AFTER_ALL.match(clause.text) else found
            )
    return found


def is_offer(sentence: str) -> bool:
    return bool(_OFFER.search(sentence))


def asks_openly(text: str) -> bool:
    """Whether the turn ends in a question that a no does not answer: "Which school is it?" """
    last = split_sentences(text)[-1:]
    return bool(last and last[0].endswith("?") and _OPEN_QUESTION.match(last[0]))


def find_offer(turn: Turn, text: str) -> Offer | None:
    """The last thing the agent offered to do in this turn, if it ended up a question of yes or
    no.
    """
    found: Offer | None = None
    for sentence in split_sentences(text):
        match = _OFFER.search(sentence)
        if (
            not match
            or _OPEN_QUESTION.search(sentence)
            or " or " in sentence
            or (found and _BARE_OFFER.fullmatch(sentence))
        ):
            continue
        act = _OFFER_HEAD.sub("", match.group(), count=1)
        if (
            sentence.endswith("?") or _STATED.match(match.group())
        ) and not _ON_THE_CALL.match(act):
            found = Offer(
                turn.seq,
                act,
                stated=bool(_STATED.match(match.group())),
                replaces=bool(_INSTEAD.search(sentence)),
            )
    if found is None and _RESUMED.search(text) and (so_far := _SO_FAR.search(text)):
        return Offer(
            turn.seq,
            next(iter(split_sentences(so_far["act"])), so_far["act"]),
            stands=True,
        )
    if found is None and _RIGHT.search(text) and (started := _STARTED.search(text)):
        act = (
            next(iter(split_sentences(started["act"].strip(" ,:"))), "")
            or started.group()
        )
        found = Offer(turn.seq, act, stands="order" not in started.group())
    return found
