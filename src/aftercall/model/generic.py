"""Names that only say what an agent is. Every agent is an assistant; that is no name."""

import re

GENERIC_NAMES = frozenset(
    {
        *("agent", "ai", "ai agent", "ai assistant", "assistant", "bot", "helper", "voice agent"),
        *("chatbot", "phone agent", "phone assistant", "virtual assistant", "voice assistant"),
    }
)
_ARTICLES = frozenset({"a", "an", "the", "my", "our", "your"})


def is_generic(name: str) -> bool:
    """Whether `name` only says what the agent is: `The Assistant`, `A.I.`, `agent.`"""
    words = re.sub(r"[\W_]+", " ", re.sub(r"[.'’]", "", name.casefold())).split()
    while words and words[0] in _ARTICLES:
        words = words[1:]
    return " ".join(words) in GENERIC_NAMES
