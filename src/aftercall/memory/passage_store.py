"""Passages: what search finds. Makes them from calls and facts, and writes them.

Every function writes inside the transaction it is given, so a fact and its passage commit together.
`postings` reads what is written here.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from aftercall.db.statements import InValues, PreparedStatement, chunked, lock_name
from aftercall.db.tables import facts, passage_pages, passage_vectors, passages
from aftercall.english.masking import ValueMask
from aftercall.english.text import MASK
from aftercall.memory.ranking import compute_marks
from aftercall.memory.words import to_terms
from aftercall.model.calls import Call
from aftercall.model.passages import PAGE_BITS, Kind, Passage

MAX_AROUND_WORDS = 200  # words kept around a fact, the newest first
REDACTED_TEXT = "•••"
"""Stands for a secret of any length, so that the length is hidden too."""
_MASKED = re.compile(f"{MASK}[{MASK} ]*(?<! )")

_HAS_REF = InValues(passages.c.ref, "refs")
_INSERT = PreparedStatement(insert(passages))
_MENTIONS = PreparedStatement(
    select(
        passages.c.ref,
        passages.c.n,
        passages.c.mentions,
        passages.c.day,
        passages.c.around,
    ).where(_HAS_REF)
)
_UPDATE_MENTIONS = PreparedStatement(
    update(passages)
    .where(passages.c.n == bindparam("at_n"))
    .values({name: bindparam(f"new_{name}") for name in ("mentions", "day", "around")})
)
_UPDATE_TEXT = (
    update(passages)
    .where(passages.c.n == bindparam("at_n"))
    .values({name: bindparam(f"new_{name}") for name in ("text", "terms", "around")})
)
_ACTIVE = PreparedStatement(
    select(passages.c.n, passages.c.ref, passages.c.agent_id, passages.c.caller).where(
        _HAS_REF, passages.c.active
    )
)
_RETIRE = PreparedStatement(
    update(passages)
    .where(passages.c.n == bindparam("at_n"))
    .values(
        active=False,
        until=bindparam("new_until", type_=passages.c.until.type),
        shelf=bindparam("new_shelf"),
    )
)
_FACT_ENDS = PreparedStatement(
    select(facts.c.id, facts.c.valid_from, facts.c.valid_until).where(
        InValues(facts.c.id, "refs")
    )
)
_LAST_NUMBER = PreparedStatement(select(func.max(passages.c.n)))
_NEXT_PAGES = select(passage_pages.next_value()).select_from(
    func.generate_series(1, bindparam("count"))
)


def make_passages(
    call: Call, secrets: Iterable[str] = (), confided: Iterable[str] = ()
) -> list[Passage]:
    """One passage for each turn; secrets are masked.

    `secrets` are words from the settings, `confided` words of facts that are kept secret. What the
    rules find to be secret is masked anyway.
    """
    clean = _make_cleaner(call, secrets, confided)
    return [
        Passage(
            kind="turn",
            agent_id=call.agent_id,
            caller=call.caller,
            call_id=call.id,
            text=clean(turn.text),
            at=turn.at,
            seq=turn.seq,
            speaker=turn.speaker,
        )
        for turn in call.turns
    ]


def make_summary_passage(
    call: Call, summary: str, secrets: Iterable[str] = (), confided: Iterable[str] = ()
) -> Passage:
    text = _make_cleaner(call, secrets, confided)(summary)
    return Passage("summary", call.agent_id, call.caller, call.id, text, call.ended_at)


def _make_cleaner(
    call: Call, secrets: Iterable[str], confided: Iterable[str]
) -> Callable[[str], str]:
    # Needed when a call is indexed; a search reads without them.
    from aftercall.english.secrets import find_secrets
    from aftercall.memory.visibility import match_words, to_secrets

    found = [*find_secrets(call.turns), *to_secrets(confided)]
    mask = ValueMask(secret.value for secret in found)
    named = match_words(secrets)

    def clean(text: str) -> str:
        masked = mask.apply(text)
        if named:
            masked = named.sub(MASK, masked)
        return _MASKED.sub(REDACTED_TEXT, masked)

    return clean


def add(connection: Connection, fresh: Iterable[Passage]) -> None:
    """Insert passages, except secret ones. The turns of one call must come together."""
    shown = [passage for passage in fresh if passage.visibility != "secret"]
    turns: dict[str | None, list[Passage]] = {}
    others = []
    for passage in shown:
        if passage.kind == "turn":
            turns.setdefault(passage.call_id, []).append(passage)
        else:
            others.append(passage)
    for of_call in turns.values():
        (first,) = _allocate_pages(connection, 1, has_neighbours=True)
        _insert(connection, [(first + passage.seq, passage) for passage in of_call])
    if others:
        numbers = _allocate_pages(connection, len(others))
        _insert(connection, zip(numbers, others, strict=True))


def replace_call(
    connection: Connection,
    call_id: str,
    fresh: Sequence[Passage],
    kinds: Sequence[Kind],
) -> None:
    """Replace the turns or the summary of a call; its facts stay."""
    lock_name(connection, call_id)
    is_old = (passages.c.call_id == call_id, passages.c.kind.in_(kinds))
    connection.execute(delete(passages).where(*is_old, passages.c.ref.is_(None)))
    add(connection, fresh)


def remove_facts(connection: Connection, fact_ids: Sequence[str]) -> None:
    for chunk in chunked(fact_ids):
        connection.execute(delete(passages).where(passages.c.ref.in_(chunk)))


def redact_passages(
    connection: Connection,
    call_id: str,
    clean: Callable[[str], str],
    words: Iterable[str],
) -> int:
    """Mask a secret that was found late; returns how many passages changed.

    `clean` masks the text of turns and summary. The `words` of the secret no longer find a fact.
    """
    lock_name(connection, call_id)
    secret_terms = {term for said in words for term in to_terms(said).split()}
    query = select(passages.c.n, passages.c.ref, passages.c.text, passages.c.around)
    changed = []
    for row in connection.execute(query.where(passages.c.call_id == call_id)).all():
        cleaned = row.text if row.ref else clean(row.text)
        around = " ".join(
            term for term in row.around.split() if term not in secret_terms
        )
        if (cleaned, around) != (row.text, row.around):
            values = {
                "new_text": cleaned,
                "new_terms": to_terms(cleaned),
                "new_around": around,
            }
            changed.append({"at_n": row.n, **values})
    if changed:
        numbers = [row["at_n"] for row in changed]
        connection.execute(
            delete(passage_vectors).where(passage_vectors.c.n.in_(numbers))
        )
        connection.execute(_UPDATE_TEXT, changed)
    return len(changed)


def record_mentions(connection: Connection, said: Sequence[Passage]) -> None:
    """Facts as they were said: a fact is one passage, and each mention adds the words around it."""
    refs = dict.fromkeys(str(passage.ref) for passage in said)
    names = ("at_n", "new_mentions", "new_day", "new_around")
    rows = {
        ref: dict(zip(names, values, strict=True))
        for ref, *values in _MENTIONS.fetch(connection, {"refs": refs})
    }
    first: dict[str, Passage] = {}
    later = []
    for passage in said:
        ref = str(passage.ref)
        if ref in rows or first.setdefault(ref, passage) is not passage:
            later.append(passage)
    numbers = _allocate_pages(connection, len(first))
    for row in _insert(connection, zip(numbers, first.values(), strict=True)):
        values = (row["n"], row["mentions"], row["day"], row["around"])
        rows[row["ref"]] = dict(zip(names, values, strict=True))
    changed = {}
    for passage in later:
        ref = str(passage.ref)
        row = changed[ref] = rows[ref]
        words = f"{to_terms(passage.around)} {row['new_around']}".split()
        row["new_mentions"] += 1
        row["new_day"] = max(row["new_day"], passage.at.toordinal())
        row["new_around"] = " ".join(list(dict.fromkeys(words))[:MAX_AROUND_WORDS])
    if changed:
        _UPDATE_MENTIONS.execute_many(connection, list(changed.values()))


def retire_facts(connection: Connection, fact_ids: Sequence[str]) -> None:
    """Retire passages of facts that no longer hold, from the end that each fact has.

    A fact without an end never held.
    """
    rows = _FACT_ENDS.fetch(connection, {"refs": fact_ids})
    retire(connection, {fact_id: until or since for fact_id, since, until in rows})


def retire(connection: Connection, ends: Mapping[str, datetime]) -> None:
    """From its end on, only a search as of an earlier instant finds the passage of a fact."""
    rows = []
    for n, ref, agent_id, caller in _ACTIVE.fetch(connection, {"refs": ends}):
        shelf = _make_shelf_terms(agent_id, caller, active=False)
        rows.append({"at_n": n, "new_until": ends[ref], "new_shelf": shelf})
    if rows:
        _RETIRE.execute_many(connection, rows)


@lru_cache(maxsize=64)
def make_scope_token(agent_id: str, caller: str | None) -> str:
    """Agent and caller as one token; empty for a withheld number."""
    return sha256(f"{agent_id}\0{caller}".encode()).hexdigest()[:24] if caller else ""


@lru_cache(maxsize=64)
def make_shelf(agent_id: str, caller: str | None) -> str:
    """The index term of an agent's passages, or of one caller's among them."""
    if caller:
        return "c" + make_scope_token(agent_id, caller)
    return "a" + sha256(agent_id.encode()).hexdigest()[:24]


def _make_shelf_terms(agent_id: str, caller: str | None, *, active: bool) -> str:
    """A passage is found under its agent and under its caller. No term of a text begins with @."""
    prefix = "@" if active else "@old"
    shelves = [make_shelf(agent_id, None)]
    if caller:
        shelves.append(make_shelf(agent_id, caller))
    return " ".join(f"{prefix}{shelf}" for shelf in shelves)


def _allocate_pages(
    connection: Connection, count: int, *, has_neighbours: bool = False
) -> list[int]:
    """The first numbers of unused pages.

    A call's turns share an odd page, where adjacent numbers are neighbours. Any other passage has
    an even page to itself.
    """
    if not count:
        return []
    if connection.dialect.name == "postgresql":
        pages: Sequence[int] = (
            connection.execute(_NEXT_PAGES, {"count": count}).scalars().all()
        )
    else:
        ((last,),) = _LAST_NUMBER.fetch(connection, {})
        first = ((last or 0) >> (PAGE_BITS + 1)) + 1
        pages = range(first, first + count)
    return [(2 * page + has_neighbours) << PAGE_BITS for page in pages]


def _insert(
    connection: Connection, numbered: Iterable[tuple[int, Passage]]
) -> list[dict[str, Any]]:
    """Returns the inserted rows."""
    rows = [_to_row(n, passage) for n, passage in numbered]
    if rows:
        _INSERT.execute_many(connection, rows)
    return rows


def _to_row(n: int, passage: Passage) -> dict[str, Any]:
    is_active = passage.until is None
    terms = to_terms(passage.text)
    row = {name: getattr(passage, name) for name in Passage.__dataclass_fields__}
    return row | {
        "n": n,
        "scope": make_scope_token(passage.agent_id, passage.caller),
        "shelf": _make_shelf_terms(passage.agent_id, passage.caller, active=is_active),
        "day": passage.at.toordinal(),
        "active": is_active,
        "marks": compute_marks(passage.text, terms),
        "terms": terms,
        "around": to_terms(passage.around),
    }
