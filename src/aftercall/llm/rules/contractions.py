"""Recognisers drop apostrophes: "dont ring its me".

Put back for the rules, and taken out again of the words that are cited.
"""

import re

from aftercall.llm.rules.cue import words_of
from aftercall.llm.rules.vocabulary import alternatives, vocabulary

_PLAIN = vocabulary(
    """
    dont cant wont isnt doesnt didnt couldnt wouldnt shouldnt havent hasnt wasnt arent werent aint neednt mustnt hadnt
    thats whats theres heres wheres hows whos theyre youre weve youve theyve ive im youll theyll itll thatll
    shes hes lets everyones someones somebodys nobodys wifes mums dads sons
    """
)
_TO_BE = (
    "(?:a|an|the|my|our|me|us|not|been|under|about|just|called|on|in|for|at|too|really|quite"
    "|all|only|now|still|gone|"
    r"broken|urgent|to|got|so|uh|um|like|another|her|his)"
)
_SHORT = re.compile(
    rf"\b(?:(?P<plain>{alternatives(_PLAIN)})|(?P<its>its)(?= {_TO_BE}\b)|(?P<ill>ill)(?= "
    r"(?!in\b|and\b|today\b|"
    rf"again\b|since\b|with\b|at\b)[a-z]+)|"
    r"(?P<id>(?<=\bbut )id|(?<=\band )id|(?<=\bso )id|^id)(?= (?:like|love|rather|say|need"
    r"|want|prefer)\b))\b",
    re.I,
)
_MAY_MISS = _PLAIN | {"its", "ill", "id"}


def restore(text: str) -> str:
    """The text with its apostrophes; unchanged where the recogniser writes them itself."""
    return (
        text
        if "'" in text or "’" in text or words_of(text).isdisjoint(_MAY_MISS)
        else _SHORT.sub(lambda match: _with_apostrophe(match.group()), text)
    )


def _with_apostrophe(word: str) -> str:
    low = word.lower()
    if low.endswith("nt"):
        return f"{word[:-1]}'{word[-1]}"
    cut = 2 if low.endswith(("re", "ve", "ll")) else 1
    return f"{word[:-cut]}'{word[-cut:]}"


def as_spoken(words: str, text: str) -> str:
    """Restored words as they stand in the turn they were taken from."""
    if words in text or "'" not in words:
        return words
    found = re.search("'?".join(map(re.escape, words.split("'"))), text)
    return found.group() if found else words
