"""What the agent said it, or its house, would do after the call."""

import re
from collections.abc import Iterable, Iterator

from aftercall.llm.rules.asks import Ask, title_of, visible
from aftercall.llm.rules.cue import Cue
from aftercall.llm.rules.memo import remember
from aftercall.llm.rules.sentences import split_sentences
from aftercall.llm.rules.stems import jaccard_similarity, overlap_coefficient, stems
from aftercall.model.reading import Promise

_WHO = (
    "(?:i['’]ll|i will|i['’]m going to|i am going to|we['’]ll|we will|we['’]re going to"
    "|you['’]ll (?:also )?(?:get|receive|"
    r"have|hear|be (?:sent|called|contacted))|you will (?:also )?(?:get|receive|hear)|"
    "(?:(?:someone|somebody|they|he|she)(?:['’]ll| will)|it(?:['’]ll| will)(?= (?:be (?:ready"
    "|delivered|with you|done|sent|"
    r"fixed|on its way)|arrive|go out))|(?:the|our|a|an|your|one of our) (?:[\w-]+ ){1,4}will"
    "|(?:dr|mr|mrs|"
    r"ms)\.? \w+(?:['’]ll| will)|(?-i:(?!(?:That|This|It|There|What|Which|Who|Here|How|You|I"
    "|We|Where|"
    r"When)\b)[A-Z]\w+)(?: from [\w ]+?)?(?:['’]ll| will)))"
)
_PROMISE = Cue(
    rf"\b(?P<who>{_WHO})(?: (?:also|then|just|make sure|be sure|personally|go ahead and"
    "|certainly|definitely|gladly|"
    r"happily))*\s+(?P<act>.+)",
)
_NEXT = Cue(rf"(?:,|;)?\s+(?:and|then|but)\s+(?=(?:then |also )?(?:{_WHO})\b)")
_NO_PROMISE = Cue(
    "^(?:leave (?:it|that|them|you|things|everything|those|this|your)|let you (?:go|get)|end"
    r"|hang up|not\b|never\b|need|"
    "be (?:right|happy|glad|here|with you|able|honest|brief|on|quick|open|closed|ready|fine)"
    "|wait|hold (?:on|the line|while|"
    r"off|a|it there)|see\b(?! (?:that|to it))|check\b(?! you in)(?!.*\b(?:and (?:call|text"
    r"|email|get back|let)|with)\b)|"
    r"take (?:a look now|that as|care of yourself)|try (?:to help|again)|ask you|say\b|repeat"
    "|read|start|explain|skip|"
    "drop (?:it|that)|cancel that|forget|ignore|disregard|keep (?:that off|it short|that in "
    "mind|it as)|assume|have to|want|"
    "know|understand|look (?:it|that|this) up|pull (?:up|it up|that up)|speak (?:to|with) you"
    "|talk to you|"
    "find (?:it|that|out now)|get (?:that|this|it|you) (?:started|going)|give you a (?:moment"
    "|second|minute)|transfer|"
    "connect|put you (?:through|on hold)|miss|remember|scratch|remove that|take that off|bear"
    "|feel|love|enjoy|do my best|"
    "help|just (?:need|ask|check)|hear (?:you|a beep)|be$|have (?:fun|to|a (?:great|good"
    r"|nice)))\b",
)
_OURSELVES = ("i'", "i’", "i ", "we", "you")
_STAND_IN = Cue(
    "^(?:do|see to|sort|take care of|arrange|handle|get) (?:that|this|it|both|all of "
    r"that)\b(?: for you)?(?: right away| now|"
    r" today)?\W*$",
)
_POINTS = Cue(r"\w+(?: \w+)? (?:it|that|them|this|those)\b|\w+ (?:have|get) it\b")
_CONDITION = Cue(
    r"\b(?:if you(?:['’]d)? (?:like|want|prefer|wish)|would you like|shall i|should i|do you "
    r"want)\b"
)


@remember
def is_promise(sentence: str) -> bool:
    return any(True for _ in _acts(sentence))


def find_promises(
    spoken: Iterable[tuple[int, str]], withdrawn: list[Ask]
) -> list[Promise]:
    """From the agent's turns; a promise repeated is one promise, and one that was called off
    with its request is none.
    """
    promises: list[Promise] = []
    for seq, text in spoken:
        for words, act in _with_matter(split_sentences(text)):
            promise = Promise(title=title_of(act), turns=(seq,), words=visible(words))
            if (
                promise.title
                and promise.words
                and not _is_called_off(promise, withdrawn)
                and not _is_repeated(promise, promises)
            ):
                promises.append(promise)
    return promises


def _with_matter(sentences: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """ "A ticket for the disk alert.

    I'll open it.": an act that only points is told with the sentence before.
    """
    before = ""
    for sentence in sentences:
        for words, act in _acts(sentence):
            yield (
                words,
                f"{act.strip(' .!')}: {before}"
                if before and _POINTS.match(act)
                else act,
            )
        before = "" if sentence.endswith("?") else sentence


def _acts(sentence: str) -> Iterator[tuple[str, str]]:
    if sentence.endswith("?") or _CONDITION.search(sentence):
        return
    for piece in _NEXT.split(sentence):
        match = _PROMISE.search(piece)
        if match and not _is_idle(match["who"], match["act"]):
            owner = (
                match["who"] if not match["who"].lower().startswith(_OURSELVES) else ""
            )
            yield piece.strip(), f"{owner} {match['act']}".strip()


def _is_idle(who: str, act: str) -> bool:
    """Said in passing: "I'll be right back" binds nobody, "the plumber will be with you by six"
    does.
    """
    if who.lower().startswith(_OURSELVES):
        return bool(_NO_PROMISE.match(act) or _STAND_IN.match(act))
    return bool(
        re.match(
            r"(?:be (?:happy|able|closed|open|fine|glad)|need|want|not|never)\b",
            act,
            re.I,
        )
    )


def _is_called_off(promise: Promise, withdrawn: list[Ask]) -> bool:
    about = stems(promise.title)
    return any(
        promise.turns[0] <= ask.turns[-1]
        and overlap_coefficient(about, stems(ask.act)) >= 0.6
        for ask in withdrawn
    )


def _is_repeated(promise: Promise, earlier: list[Promise]) -> bool:
    about = stems(promise.words)
    return any(
        jaccard_similarity(about, stems(other.words)) >= 0.75
        and promise.turns != other.turns
        for other in earlier
    )
