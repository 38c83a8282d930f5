"""The answers about the parts of a long call put together: the last word counts."""

from collections.abc import Iterable, Sequence

from aftercall.model.reading import Asked, FactDraft, Identity, Profile, Promise, Request, Withdrawn


def merge_profiles(parts: Sequence[Profile]) -> Profile:
    merged: dict[str, str] = {}
    for part in parts:
        merged |= {name: value for name, value in part.model_dump().items() if value}
    for name in ("notes", "context"):
        told = list(dict.fromkeys(value for part in parts if (value := getattr(part, name))))
        if told:
            merged[name] = " ".join(told)
    return Profile(**merged)


def merge_identities(parts: Sequence[Identity]) -> Identity:
    """The first name stands: an agent introduces itself at the beginning."""
    merged: dict[str, str] = {}
    for part in reversed(parts):
        merged |= {name: value for name, value in part.model_dump().items() if value}
    return Identity(**merged)


def merge_asked(parts: Iterable[Asked]) -> Asked:
    requests: list[Request] = []
    withdrawn: list[Withdrawn] = []
    promises: list[Promise] = []
    for part in parts:
        titles = {_plain(item.title) for item in part.withdrawn}
        requests = [item for item in requests if _plain(item.title) not in titles]
        requests += [item for item in part.requests if all(_plain(item.title) != _plain(other.title) for other in requests)]
        withdrawn += part.withdrawn
        promises += [item for item in part.promises if all(_plain(item.title) != _plain(other.title) for other in promises)]
    return Asked(requests=tuple(requests), withdrawn=tuple(withdrawn), promises=tuple(promises))


def merge_facts(parts: Iterable[Sequence[FactDraft]]) -> tuple[FactDraft, ...]:
    facts: dict[str, FactDraft] = {}
    for fact in (fact for part in parts for fact in part):
        facts.setdefault(_plain(fact.text), fact)
    return tuple(facts.values())


def _plain(title: str) -> str:
    return " ".join(title.casefold().split()).rstrip(".!?")
