"""What the agent misheard: words it says back for confirmation and the caller puts right."""

import re
from difflib import SequenceMatcher

from aftercall.llm.rules.sentences import split_sentences
from aftercall.llm.rules.spelling import spelled_words
from aftercall.llm.rules.stems import stems

_SAYS_BACK = 6  # words of a question that only says back
_ALIKE = 0.5
_WORD = re.compile(r"[^\W\d_]{3,}|\d+")
_ASKS = re.compile(
    r"\b(?:what|which|who|where|when|why|how|would|could|can|shall|should|do|does|did|have|may"
    r"|will|are|want|any|or|anything|else)\b",
    re.I,
)
_AGREES = re.compile(
    "(?:yes|yeah|yep|yup|correct|right|that['’]s|that (?:works|would|will|suits)|exactly|sure"
    "|uh huh|mm|perfect|great|fine|good|lovely|"
    r"ok|okay|"
    r"please|sounds)\b",
    re.I,
)


def misheard(said: str, reply: str) -> list[str]:
    """ "Seventeen Tannery Close?" "Seven.

    Just seven.": the agent's word that the caller has another one for.
    """
    if _AGREES.match(reply):
        return []
    asked = [sentence for sentence in split_sentences(said) if sentence.endswith("?")]
    back = asked[-1] if asked else ""
    spelled = spelled_words(back)
    if not spelled and (
        not back or len(back.split()) > _SAYS_BACK or _ASKS.search(back)
    ):
        return []
    answered = {word.lower() for word in _WORD.findall(reply)}
    answered |= {word.lower() for word in spelled_words(reply)}
    return [
        word
        for word in (*_WORD.findall(back), *spelled)
        if word.lower() not in answered and _is_like(word, answered)
    ]


def _is_like(word: str, others: set[str]) -> bool:
    low = word.lower()
    return bool(stems(word)) and any(
        low[0] == other[0] and SequenceMatcher(None, low, other).ratio() >= _ALIKE
        for other in others
    )
