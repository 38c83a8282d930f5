"""Words: classes from `words.toml`, patterns that name them, stems, a cache that forgets speech."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from threading import local
from typing import Any, ParamSpec, TypeVar, cast

_CLASS = re.compile(r"(?<!\?P)<([a-z]+)>")
_SPACES = re.compile(r"\s+")
# A bar may stand at the beginning or the end of a line, or between spaces.
_BAR = re.compile(r"\s*\n\s*\|\s*|\|\s*\n\s*| \| ")


@cache
def _tables() -> dict[str, Any]:
    text = files("aftercall.english").joinpath("words.toml").read_text("utf-8")
    return tomllib.loads(text)


def word_table(name: str) -> dict[str, str]:
    """Words and what each stands for."""
    return cast("dict[str, str]", _tables()[name])


@cache
def word_class(name: str) -> frozenset[str]:
    """The words and phrases of a class."""
    return frozenset(word.replace("_", " ") for word in _tables()[name].split())


@cache
def listed_words() -> frozenset[str]:
    """Every single word of every class."""
    lists = (text for text in _tables().values() if isinstance(text, str))
    return frozenset(word for text in lists for word in text.split())


@cache
def alternatives(name: str) -> str:
    """A pattern for any member of a class; a longer one before its own beginning."""
    members = sorted(word_class(name), key=lambda word: (-len(word), word))
    return f"(?:{'|'.join(map(re.escape, members))})"


def compile_pattern(text: str) -> re.Pattern[str]:
    """A pattern over whole words of the normal form; `<kin>` stands for a word class."""
    line = _SPACES.sub(" ", _BAR.sub("|", text.strip()))
    spelled = _CLASS.sub(lambda match: alternatives(match[1]), line)
    return re.compile(rf"(?<!\S)(?:{spelled})(?!\S)")


def load_patterns(package: str, table: str) -> dict[str, re.Pattern[str]]:
    """The patterns of one table of a package's `patterns.toml`."""
    text = files(package).joinpath("patterns.toml").read_text("utf-8")
    rows = tomllib.loads(text)[table]
    return {name: compile_pattern(pattern) for name, pattern in rows.items()}


def vocabulary(text: str) -> frozenset[str]:
    """A word list written as running text."""
    return frozenset(text.split())


def word_list(text: str) -> tuple[str, ...]:
    """Words in order, written as running text."""
    return tuple(text.split())


def count_noun(count: int, noun: str) -> str:
    """A count as people write it: "1 call", "2 calls", "1,200 entries"."""
    if count == 1:
        return f"1 {noun}"
    ending = "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        noun, ending = noun[:-1], "ies"
    return f"{count:,} {noun}{ending}"


_DESCRIBING_ENDS = word_list(
    """
    ing ed ful less ous able ible ish ant ent ior tic sive tive ical ional
    """
)
_MIN_DESCRIBING_CHARS = 5


def is_descriptive(word: str) -> bool:
    """Whether a word describes and names nothing: "useless", not "barclays"."""
    if word in word_class("descriptive"):
        return True
    has_ending = word.endswith(_DESCRIBING_ENDS) and word not in word_class("names")
    return has_ending and len(word) >= _MIN_DESCRIBING_CHARS


def by_form(forms: Mapping[str, str]) -> dict[str, str]:
    """Each form of a word, and the word it stands for."""
    return {form: word for word, others in forms.items() for form in others.split()}


Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")
_CLEARS: list[Callable[[], None]] = []


def remember(
    ask: Callable[Asked, Answer], max_answers: int = 4096
) -> Callable[Asked, Answer]:
    """Caches a pure function of a text until `clear_caches`."""
    kept = lru_cache(maxsize=max_answers)(ask)
    _CLEARS.append(kept.cache_clear)
    return cast("Callable[Asked, Answer]", kept)


def clear_caches() -> None:
    for clear in _CLEARS:
        clear()


_STEMMED = re.compile(r"[^\W_]+(?:'[^\W\d_]+)?")


_stemmers = local()


def stem_word(word: str) -> str:
    """The stem of a lower-case English word; nothing is kept.

    A stemmer holds the word it works on, so each thread has its own. The library is loaded at
    first use: it brings the stemmers of thirty languages.
    """
    if not hasattr(_stemmers, "english"):
        import snowballstemmer

        _stemmers.english = snowballstemmer.stemmer("english")
    return str(_stemmers.english.stemWord(word))


_stem_own = cache(stem_word)
_own_words: set[str] = set()


def add_own_words(words: Iterable[str]) -> None:
    """Words of a model's weights are as public as those of our lists."""
    _own_words.update(words)


@remember
def stem(word: str) -> str:
    """Stems of our own words are kept for good; those of what callers say are not."""
    is_own = word in _own_words or word in listed_words()
    return _stem_own(word) if is_own else stem_word(word)


@remember
def stems(text: str) -> frozenset[str]:
    """The stems of all words but those that carry no meaning of their own."""
    words = set(_STEMMED.findall(text.lower().replace("’", "'")))
    return frozenset(
        [stem(word) for word in words - word_class("stop") if len(word) > 1]
    )


def stems_of(texts: Iterable[str]) -> frozenset[str]:
    """The stems of several texts together."""
    return frozenset[str]().union(*map(stems, texts))


def overlap_coefficient(first: frozenset[str], second: frozenset[str]) -> float:
    """How much of the smaller set is in the other."""
    smaller = min(len(first), len(second))
    return len(first & second) / smaller if smaller else 0.0


def jaccard_similarity(first: frozenset[str], second: frozenset[str]) -> float:
    """How much of both together is common to both."""
    return len(first & second) / len(first | second) if first | second else 0.0
