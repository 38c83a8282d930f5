"""Whether two titles name one thing, however it was phrased."""

import re
from hashlib import sha256

from aftercall.llm.rules.stems import jaccard_similarity, overlap_coefficient, stems

_SAME_KIND = 0.5
_ANY_KIND = 0.67
# Words that say what is to be done and not with what: two bugs are two bugs.
_ACTS = stems(
    "open opened bug issue ticket problem file report create make add write note task "
    "remember follow message email text fix check"
)
_NOT_WORDS = re.compile(r"[\W_]+")


def normalise_title(title: str) -> str:
    return _NOT_WORDS.sub(" ", title.casefold()).strip()


def key_of(conversation: str, kind: str, request_kind: str, title: str) -> str:
    """One request of one conversation has one key for good, also when the database was lost and
    everything is read anew.
    """
    return sha256(
        "\0".join((conversation, kind, request_kind, normalise_title(title))).encode()
    ).hexdigest()[:32]


def is_same_title(title: str, kind: str, other: str, other_kind: str) -> bool:
    if normalise_title(title) == normalise_title(other):
        return True
    first, second = _matter(title), _matter(other)
    if not first or not second:
        return False
    is_within = min(len(first), len(second)) > 1 and overlap_coefficient(first, second) == 1
    return (is_within and kind == other_kind) or jaccard_similarity(first, second) >= (
        _SAME_KIND if kind == other_kind else _ANY_KIND
    )


def overlap(first: str, second: str) -> float:
    """How much of the shorter one's meaning is in the other."""
    return overlap_coefficient(_matter(first), _matter(second))


def _matter(text: str) -> frozenset[str]:
    return stems(text) - _ACTS or stems(text)
