"""Which day a request is due: the caller's words for it, and the days an agent puts forward."""

from dataclasses import dataclass
from datetime import date, timedelta

from aftercall.llm.rules import cues
from aftercall.llm.rules.asks import Ask
from aftercall.llm.rules.corrections import REPLACES, settle_repairs
from aftercall.llm.rules.cue import Cue
from aftercall.llm.rules.dates import find_dates
from aftercall.llm.rules.promises import is_promise
from aftercall.llm.rules.reckoning import Mention
from aftercall.llm.rules.sentences import Clause, split_sentences

# What a request is about when it goes on: the thing wanted, whoever is to act, or what the
# caller wants and can do.
_OF_THE_REQUEST = Cue(
    "^(?:(?:i|we)(?:['’](?:d|m|re|ll)| would| could| can| was| were| am| are| will| do| only"
    "| really| just)* (?:need|"
    r"want|like|prefer|love|do|"
    "make|manage|come in|take|thinking|hoping|free|available|around|good|home|off|rather|able"
    r"|say|have time|aiming|looking)\b|"
    "(?:it|that|this|they|one)(?:['’](?:d|ll|s|re)| (?:would|should|must|could|can|has|have"
    r"|needs?|is|are|will))\b|"
    "(?:he|she|they|somebody|someone|you)(?:['’](?:d|ll))?(?: (?:should|could|can|must"
    "|needs? to|has to|have to|better|ought to))+ )",
)
# Somebody does or is something of their own on that day.
_OF_SOMEBODY = Cue(
    r"^(?:(?:i|we|he|she|they|my|our|his|her|their|you)(?:['’]\w+)? |(?-i:[A-Z][a-z]+)(?:['’]s"
    "| (?:is|has|will|was|and|[a-z]{2,}s)) )"
)
# "The book I'll bring back tomorrow", "I do that today": what the caller does on that day.
_OWN_PLAN = Cue(
    r"\bi(?:['’]ll| will| must| have to|['’]ve got to|['’]m going to|['’]m gonna| do| bring| "
    "gotta| can) (?!need|"
    r"want|have it|take|like|do with)|"
    r"\bhow (?:much|long|many|far)\b|\b(?:he|she|they)(?:['’]s| has| have| had)(?: got)? "
    r"(?:the|a|an|his|her)\b",
)
_OWN_DOING = Cue(
    r"\bi(?:['’]ll| will| must| have to|['’]ve got to|['’]m going to|['’]m gonna| bring| "
    "gotta) (?!need|want|have it|"
    r"take|like)",
)
_MUST_BE = Cue(
    r"^(?:i|we) (?:really )?(?:need|want|must have)\b.*\b(?:by|before)\b|^(?:he|she|they) "
    "(?:really )?(?:needs?|wants?|"
    r"must have) (?:it|that|this|them)\b.*\b(?:by|before)\b|"
    r"^(?:it|that|this|they|those|everything|"
    r"the \w+)(?:['’]s| has| have| had|['’]d|['’]ll)?(?: got)? ?(?:must|has to|have to|needs? "
    "to|need|to|should|"
    r"gotta|better|"
    r"ought to) .*\b(?:by|before|on|for|until)\b",
)
_STRETCH = Cue(r"^[\w ]{0,12}\b(?:to|until|till|through)\b[\w ]{0,6}$")
_TO_SOMEBODY = Cue(
    r"\b(?:tell|ask|inform|let|warn|message|text|email|ring|call|phone|write(?: to)?)(?: "
    "(?:the |my |our |"
    r"your )?[\w'’.]+(?:,? (?-i:[A-Z])[\w'’]+)?)?,?(?: know)?,?"
    r"(?: (?:still|by|before|on|for|first thing))*\s*$",
)
_CONTENT_BEGINS = Cue(
    r"\W*$|[,:]? (?:that|if|whether|about|to|please|when|what|how|and|there['’]?s?|i|i['’]\w+"
    "|we|he|she|they|it['’]?s?|my|our|the|"
    r"(?-i:[A-Z])\w*)\b"
)
_FIRST_WORDS = 4  # characters a day may stand behind the start and still open the clause: "on ", "by "


@dataclass(frozen=True, slots=True)
class Proposal:
    seq: int
    sentence: str
    mention: Mention
    others: tuple[Mention, ...] = ()


def find_proposals(
    seq: int, text: str, today: date, anchor: date | None
) -> list[Proposal]:
    """The last day of each of an agent's sentences, promises left out: a day promised is not a
    day agreed.
    """
    return [
        Proposal(seq, sentence, *_put_forward(sentence, mentions))
        for sentence in split_sentences(text)
        if (sentence.endswith("?") or not is_promise(sentence))
        and not (cues.FAREWELL.match(sentence) or cues.ANYTHING_ELSE.search(sentence))
        and (mentions := find_dates(sentence, today, anchor))
    ]


def _put_forward(
    sentence: str, mentions: list[Mention]
) -> tuple[Mention, tuple[Mention, ...]]:
    """The last day of a sentence, or the first of a stretch of days: "from the third to the
    tenth".
    """
    lasts = len(mentions) > 1 and _STRETCH.search(
        sentence[mentions[-2].end : mentions[-1].start]
    )
    chosen = mentions[-2 if lasts else -1]
    return chosen, tuple(mention for mention in mentions if mention is not chosen)


def takes_day(ask: Ask) -> bool:
    """Whether a day beside the request says when it is due; that of a note or of an ending
    belongs to its matter.
    """
    return (
        ask.kind != "note"
        and not ask.is_stop
        and not ask.from_fault
        and not cues.ENDS.match(ask.act)
    )


def opening_day(
    ask: Ask, text: str, today: date, anchor: date | None, before: list[Clause]
) -> date | None:
    """The day in the words that raise a request."""
    if not takes_day(ask):
        return None
    text = settle_repairs(text)
    mentions = find_dates(text, today, anchor)
    if cues.CONTENT_DATED.match(ask.act):
        return next(
            (mention.day for mention in mentions if _is_before_content(text, mention)),
            None,
        )
    if cues.MOVES.match(ask.act):
        mentions = [
            mention
            for mention in mentions
            if cues.MOVED_TO.search(text[: mention.start])
        ][-1:]
    if mentions:
        return mentions[0].day
    earlier = [
        mention.day
        for clause in before[-2:]
        for mention in find_dates(clause.text, today)
    ]
    then = cues.THEN.search(text)
    return (
        earlier[0] - timedelta(days=then.group().lower().startswith("before"))
        if then and earlier
        else None
    )


def _is_before_content(text: str, mention: Mention) -> bool:
    """ "Ask him before Thursday if the tenth suits him": the first day is when to ask, the
    second is what is asked.
    """
    return bool(
        _TO_SOMEBODY.search(text[: mention.start])
        and _CONTENT_BEGINS.match(text[mention.end :])
    )


def is_about_request(body: str, today: date, anchor: date | None = None) -> bool:
    """Whether the day in words near a request is said of the request, not of somebody's own
    doings.
    """
    mentions = find_dates(body, today, anchor)
    if (
        not mentions
        or cues.MINE.match(body)
        or _OWN_PLAN.search(body[: mentions[0].start])
    ):
        return False
    if _MUST_BE.match(body):
        return True
    return (
        mentions[0].start <= _FIRST_WORDS
        or bool(_OF_THE_REQUEST.match(body))
        or not _OF_SOMEBODY.match(body)
    )


def own_days(body: str, today: date) -> list[date]:
    """The days on which the caller says to do something of their own."""
    return [
        mention.day
        for mention in find_dates(body, today)
        if _OWN_DOING.search(body[: mention.start])
    ]


def must_be(body: str) -> bool:
    """ "It has to work by Wednesday": said of the request, however long ago it was made."""
    return bool(_MUST_BE.match(body))


def later_day(
    ask: Ask, text: str, today: date, anchor: date | None, *, asked: bool = False
) -> date | None:
    """The day in words that fill in or correct a request, or that answer when it is `asked` for."""
    if not asked and not takes_day(ask):
        return None
    text = settle_repairs(text)
    mentions = find_dates(text, today, anchor)
    if not asked and cues.CONTENT_DATED.match(ask.act) and not must_be(text):
        mentions = [
            mention for mention in mentions if _is_before_content(text, mention)
        ]
    if not mentions:
        return None
    chosen = mentions[-1] if REPLACES.search(text) else mentions[0]
    # "Monday is fine" for Monday the twenty-first, however far ahead that is
    same = (
        chosen.weekday_only
        and ask.due
        and ask.due.weekday() == chosen.day.weekday()
        and not cues.THIS_ONE.search(text)
    )
    return ask.due if same else chosen.day
