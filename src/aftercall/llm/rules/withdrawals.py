"""Calling things off: "scratch that", "forget the tubes", "no cab", and what exactly each of
them calls off.
"""

from dataclasses import dataclass
from typing import Literal

from aftercall.llm.rules.cue import Cue, Table
from aftercall.llm.rules.memo import remember
from aftercall.llm.rules.reckoning import WEEKDAY
from aftercall.llm.rules.sentences import body_of
from aftercall.llm.rules.stems import stems

Scope = Literal["all", "last", "named"]

_PRONOUN = (
    "(?:anybody|anyone|anything|that|it|this|him|her|them|those|these|that one|the last "
    "(?:one|bit|thing|part))"
)
_CALL_OFF = Table(
    (Cue(pattern), pattern.startswith("^"))
    for pattern in (
        r"\bforget (?:i|we) (?:ever |even )?(?:asked|said|mentioned|called|rang)\b(?P<what>)",
        (
            r"(?<!\bi )(?<!\bto )(?<!\bme )(?<!['’]t )(?<!\bwe )(?<!\bi['’]d )(?<!\bwe['’]d "
            r")\b(?:scratch|strike|forget|forget about|"
            r"never ?mind|nevermind|ignore|bin|ditch|drop(?!.*\b(?:off|round|by|around|over"
            r"|in)\b)|skip|cancel|disregard|"
            r"take back|hold off on|"
            r"leave off|leave out|scrap)(?: about)?\s+(?P<what>(?:that|it|this|them|those|all"
            r"|everything|the|my|about|what i)\b[^.!?]*|"
            r"[a-z]+(?: [a-z]+)?(?=[.,!?]|$))"
        ),
        r"\b(?:never ?mind|nevermind)(?P<what>)(?:[,.!]|$| then\b)",
        (
            r"\b(?:on )?second thoughts?,? (?:no|not|don['’]?t|leave|forget|i)\b(?: "
            r"(?P<what>(?:the|my|that|those)\b[^.!?]*))?"
        ),
        r"\bknock (?:(?P<what>(?:the|my|that|those|all)\b[^.!?]*?)|it|them) on the head\b",
        r"\b(?:take|leave) (?:off|out) (?P<what>(?:the|that|those|my)\b[^.!?]*)",
        (
            r"\b(?:do|manage|live|go|get by|cope) without(?: (?P<what>(?:the|that|it|my|those|a"
            r"|any)\b[^.!?]*))?"
        ),
        # Somebody else does it, or has done it.
        (
            r"\b(?:(?:i|we)(?:['’]ve| have)?(?: just| already)+|(?:i|we)(?:['’]ve| "
            r"have)(?=.*\b(?:myself|ourselves|already)\b)|"
            r"(?:he|she|they|someone|somebody|(?:my|our) [\w-]+(?: in law)?)(?:['’](?:s|ve|re)"
            "| has| have| is| are)?(?: just| already)*) "
            "(?:done|sorted|fixed|handled|booked|ordered|bought|taken care of|dealt with"
            "|doing|getting|bringing|"
            r"sorting|fixing|handling|making) "
            r"(?P<what>it|that|this|one|them|those|hers|his|(?:that|the) \w+)(?: (?:already"
            "|myself|ourselves|"
            r"himself|herself|now|instead|for me|anyway))*(?=[,.!?]|$| and| so| but)"
        ),
        (
            "^(?:then |so |well |just |okay |please )*(?:leave|keep) (?:it|that|things"
            "|everything)(?: just)? (?:(?:as|where|"
            r"how) (?:it|they) (?:is|are|was|stands?)|as is|the way)\b(?P<what>)"
        ),
        (
            r"\b(?:actually|no|oh|wait|on second thoughts?|second thoughts?|you know what),? "
            "(?:please )?don['’]?t (?:"
            "bother with|bother about|bother|do|send|book|call|ring|tell|order|add|change"
            "|move|cancel|remind|put|need|get|email|"
            r"text|open|file|make|include)(?: with)?\b ?(?P<what>[^.!?]*)"
        ),
        (
            "^(?:then |so |please |okay |well |just |and )*don['’]?t (?:send|book|order|add"
            "|change|move|cancel|put|get|open|file|"
            "make|include|deliver|arrange|schedule) (?P<what>it|that|them|those|any of (?:it"
            "|that)|(?:anybody|anyone|anything|one)|"
            r"the \w+(?: \w+)?)(?:,? (?:on )?\w+day)?(?:,? (?:then|anymore|after all|yet|for "
            "now))?[.!,]*$"
        ),
        (
            r"\bdon['’]?t (?:worry about (?!it\b|that\b|me\b)|bother with |bother about |bother "
            ")(?P<what>[^.!?]*)"
        ),
        # "Leave the boosters" lets them be; "leave the parcel with Joan" does not.
        (
            "^(?:no[, ]+|then |so |just |well |actually,? |okay,? |please |oh,? |yeah,? |and "
            ")*leave (?P<what>(?:the|those|my|any|that) "
            r"(?!(?:[\w'’-]+ ){0,3}(?:with|at|on|in|by|outside|under|behind|to|here|there|next"
            "|inside|around|"
            r"where|until|till|alone|as(?! well)|for)\b)"
            r"[\w '’-]{3,40})(?:[,.!]|$)"
        ),
        (
            r"\b(?:leave|keep) (?:it|that|them|things) (?:open|running|going|in place|as "
            "(?:normal|usual|planned|"
            r"before)|on|where|for the moment|how)\b(?P<what>)"
        ),
        (
            r"\b(?:just |let['’]s )?hold (?:off|fire|your horses)(?: on (?P<what>[^.!?]+)|(?= for "
            r"now| then|[,.!]|$| i\b| until| till))"
        ),
        (
            "^(?:actually|hm+|well|oh|no|wait|but|and|hang on|hold on|[, ])*let me (?:just "
            ")?(?:see|wait|check|think|"
            r"ask|talk|find out|sleep)\b"
            r".*\b(?:first|before (?:i|we)|on it|over)\b(?P<what>)"
        ),
        (
            r"\bi (?:wasn['’]?t|am not|['’]m not|was not) asking(?: for (?P<what>(?:that|it"
            r"|the)\b[^.!?]*)| you to [^,.!?]*)?(?=[,.!]|$| but)"
        ),
        (
            r"^(?:(?:oh|no|actually|wait|well|hm+)[, ]+)*not (?P<what>(?:the|my|that|those) [\w "
            "]{3,25})(?:[,.!]|$)"
        ),
        r"\bdon['’]?t bother\b(?P<what>)",
        r"^(?:oh |no,? |actually,? |wait,? |hmm,? )*don['’]?t[.!]?$(?P<what>)",
        r"\b(?:there['’]s )?no need (?:to|for) (?P<what>[^.!?]*)",
        r"\bno need(?P<what>)(?=[,.!]|$| (?:then|now|any ?more|after all)\b)",
        # A negated order that ends with its verb calls off what is going on: "don't log it".
        (
            r"(?:^|[,.] |\b(?:no|wait|actually|please|so|but) )don['’]?t (?!worry|mind|know"
            "|think|forget|hang|be|you|tell|say|"
            r"want|need|have|ask|laugh|blame|judge|panic|rush|get me)[a-z]+"
            "(?: (?:it|that|them|this|him|her|anything))?(?: (?:then|yet|after all|any ?more"
            "|please))*(?:[,.!]|$)(?P<what>)"
        ),
        (
            r"\b(?:let['’]s |we['’]ll |i['’]ll |just )?call (?:it|that|the whole thing) "
            r"off\b(?P<what>)"
        ),
        (
            r"\btake (?:me|us|him|her) off(?: again|(?: of)? (?:it|that|the list))?(?=[,.!]"
            "|$)(?P<what>)"
        ),
        (
            r"^(?:well |so |okay |oh )*then no\b(?P<what>)|\b(?:that['’]s|it['’]s) no (?:use"
            r"|good) to (?:me|us)\b"
        ),
        (
            r"\b(?:i|we)['’]ll (?:just |probably )?(?:leave (?:it|that)(?! (?:to|with|in|at"
            r"|on)\b)|skip (?:it|that)|"
            r"keep (?:it|them)(?=[,.!]|$| then)|do without|live with it)\b(?P<what>)"
        ),
        (
            "^(?:oh,? |ah,? |wait,? )*(?:i(?:['’]ve)? |we(?:['’]ve)? )?(?:just )?found (?:it|one"
            r"|them)\b(?P<what>)"
        ),
        r"\blet['’]s not(?=[,.!]|$)(?P<what>)",
        r"\byou (?:don['’]?t (?:need|have) to|needn['’]?t) (?P<what>[^.!?]*)",
        (
            r"\b(?:let['’]s (?:not|skip|leave|drop|forget|hold off on)|(?:we|i) can (?:skip"
            "|drop|leave|forget)|(?:kill|ditch|bin|"
            r"undo|hold off on)) (?P<what>(?:that|it|the|this|those)\b[^.!?]*)"
        ),
        r"\bleave (?P<what>the [\w ]+?) (?:for now|alone|for another|as (?:it|they))\b",
        (
            r"\b(?:i|we) (?:don['’]?t|do not|won['’]?t|no longer) (?:actually |really |even "
            "|be )?(?:need|want|needing|"
            r"wanting) (?P<what>(?:that|it|this|them|the|a|an|one|to|you)\b[^.!?]*?)(?: "
            "(?:then|anymore|any more|after all|"
            r"now))?(?:[,.!?]|$)"
        ),
        r"\bdon['’]?t need (?P<what>(?:it|that|them|the \w+|one))\b[^.!?]*",
        (
            r"\b(?:can|could|would) you (?:please |just )?(?:(?:leave|take) (?P<what>.+?) "
            "(?:off|out)|(?:cancel|remove|skip|"
            r"scratch) (?P<other>.+?))(?:[,.!?]|$)"
        ),
        (
            r"\b(?:leave|take) (?P<what>(?:the|that|it|those)\b[^.!?]*?|(?!me\b|us\b|him\b"
            r"|her\b|them\b|my\b)[a-z]{3,}) (?:off|out)(?: "
            r"again| then| now|"
            r" please)*(?: (?:of|the (?:order|list|bill|quote|"
            r"invoice))\b[^.!?]*)?(?:[,.!?]|$)"
        ),
        (
            r"^(?:leave (?:it|that|them)(?=\W*$|,? (?:then|alone|for now|there|be|at that"
            "|please|thanks|thank|don|it['’]s|i['’]ll))|"
            r"let['’]s leave it(?=\W*$)|let['’]s not(?=\W*$)|let it go|forget it|skip it"
            "|i['’]ll do (?:it|"
            "that) myself|i['’]ll (?:tell|call|ring|handle|sort|do) (?:it|that|him|her"
            r"|them)? ?myself)(?P<what>)\b"
        ),
        (
            r"\b(?:i|we)(?:['’]ll| will|['’]d better|['’]m going to| can| do) (?:just "
            ")?[a-z]+(?: up| off| over| care of)? "
            r"(?P<what>(?:him|her|them|it|that|the [\w ]{2,20}?|[\w ]{2,20}?)) (?:out "
            r")?(?:myself|ourselves|on my own)\b"
        ),
        (
            "^(?:so |then |and |and then )*no (?P<what>(?!problem|worries|thank|need|rush"
            "|trouble|idea|wonder|matter|way|doubt|"
            r"one|more|longer|i\b|it\b|that\b|the\b|he\b|she\b|we\b|they\b|you\b|my\b|wait\b"
            r"|hold\b|hang\b|actually\b|just\b|no\b|"
            r"not\b|sorry\b|please\b|make\b|don)[a-z]+(?: [a-z]+)?)(?: then| after all| "
            "anymore)?[.!]?$"
        ),
        (
            r"\b(?:the|that|my) (?P<what>[\w ]{2,40}?) (?:can wait|isn['’]?t (?:needed"
            r"|necessary)|is sorted(?: already)?)\b"
        ),
        (
            r"\b(?:someone else|the hotel|my \w+|he|she)(?:['’]s| is) (?:already )?(?:doing"
            "|handling|taking care of|sorting|"
            r"getting) (?P<what>that|this|one)\b"
        ),
        (
            r"\bi(?:['’]ve)? already (?:did|done|sorted|took care of|handled) (?P<what>that|it"
            r"|the [\w ]+)\b"
        ),
        (
            r"\b(?:i|we)(?:['’]ve| have)? changed (?:my|our) minds?(?: (?:about|on) "
            "(?P<what>[^.!?]+))?"
        ),
    )
)
# "I'm not asking you to take her off", "I was going to ask you to drop it": nothing is taken back.
_NOT_ASKING = Cue(
    r"\b(?:not (?:asking|saying|telling) (?!for (?:that|it)\b)\w|was going to|wasn['’]?t "
    "going to|i never said)"
)
_ALL = Cue(
    r"\b(?:all (?:of (?:it|that|them)|that|this)|everything|the whole (?:thing|lot|order"
    "|booking)|the lot|both(?: of them)?|"
    r"any of it)\b",
)
_ONLY_PRONOUN = Cue(
    rf"^\W*(?:{_PRONOUN}|one|to|you|anything|anymore|then|no|about)?(?:,? (?:then|please"
    "|actually|i|we|for now|after all|"
    r"anymore))*\b\W*$",
)
_DAY = Cue(rf"(?:{WEEKDAY}|tomorrow|today|tonight)\b")
_THING = Cue(r"^(?:the|my|that|our)\b")
# Put off to a time nobody names: as long as nothing was agreed, the request is given up.
_PUT_OFF = Cue(
    r"\bi(?:['’]ll|['’]d better|['’]m going to| will| need to| should|['’]ve got to| have to) "
    "(?:just |have to |"
    r"first )?(?:think (?:about|it)|have a think|"
    "(?:call|ring|phone|get|come) (?:you )?back|get back to you|let you know|sleep on it"
    "|shop around|talk to my|"
    r"check with my|speak to my|ask my|"
    r"walk|drive|wait|pass|manage|look elsewhere|try (?:somewhere|someone|elsewhere))\b|\blet "
    "me (?:think|talk to|"
    r"check with|ask|speak to|have a think)\b|"
    r"\btoo (?:much|expensive|dear|steep|pricey|long|far) for (?:me|us)\b|\b(?:can['’]?t"
    r"|cannot) afford\b",
)
_EARLIER = Cue(
    r"\b(?:i|we) (?:asked|ordered|wanted|mentioned|booked|requested)\b|\b(?:from|asked for) "
    r"(?:before|earlier)\b"
)
_STANDING = Cue(
    r"\bcancel (?:my|our|the|his|her) (?:\w+ )?(?:appointment|subscription|membership|booking"
    "|reservation|order|policy|"
    "account|contract|plan|service|visit|lesson|class|meeting|flight|room|table|delivery"
    "|trial|card|insurance|"
    r"\w+ appointment)\b",
)


# "The sunglasses I asked about, leave those off": the thing meant stands in front.
_FRONTED = Cue(
    r"(?:(?:and|oh|also|but|so|actually|then),? )*(?:the|my|those|that|our) [\w '’-]+$"
)


@dataclass(frozen=True, slots=True)
class CallOff:
    scope: Scope
    stems: frozenset[str]
    what: str
    names_earlier: bool
    cancels_standing: bool


@remember
def find_call_off(text: str) -> CallOff | None:
    if _NOT_ASKING.search(text):
        return None
    body = body_of(text)
    for pattern, opens in _CALL_OFF.of(text):
        match = pattern.search(text) or (
            pattern.search(body) if opens and body != text else None
        )
        if not match:
            continue
        what = (
            match.groupdict().get("what") or match.groupdict().get("other") or ""
        ).strip()
        fronted = text[: match.start()].strip(" ,") if _ONLY_PRONOUN.match(what) else ""
        if _FRONTED.match(fronted) and stems(fronted):
            return CallOff(
                "named",
                stems(fronted),
                fronted,
                bool(_EARLIER.search(fronted)),
                bool(_STANDING.search(text)),
            )
        standing = bool(_STANDING.search(text))
        if _ALL.search(match.group()):
            return CallOff(
                "all", stems(what), what, bool(_EARLIER.search(text)), standing
            )
        if (
            what
            and not stems(what)
            and not _ONLY_PRONOUN.match(what)
            and not _THING.match(what)
            and not _DAY.match(what)
        ):
            return None
        if not what or _ONLY_PRONOUN.match(what) or not stems(what):
            return CallOff(
                "last", frozenset(), what, bool(_EARLIER.search(text)), standing
            )
        return CallOff(
            "named", stems(what), what, bool(_EARLIER.search(text)), standing
        )
    return None


_NEGATED = Cue(
    r"^(?:(?:no|oh|actually|wait|please|but|so|and|then|just|hm+|yeah|yes)[,. ]+)*(?:don['’]?t|"
    r"do not) (?P<verb>[a-z]+)\b(?P<rest>(?! (?:anyone|anybody|a soul|nobody|people"
    r"|everyone)\b).*)",
)


def find_negated(text: str) -> tuple[str, frozenset[str]] | None:
    """ "Don't tell him anything": the verb not to be done, and what it would be done to."""
    match = _NEGATED.match(text)
    return (
        (match["verb"].lower(), stems(match["rest"].partition(",")[0]))
        if match
        else None
    )


def find_earlier(text: str) -> bool:
    """Whether the words speak of something asked for before this call or this leg of it."""
    return bool(_EARLIER.search(text))


def is_put_off(text: str) -> bool:
    return bool(_PUT_OFF.search(text))
