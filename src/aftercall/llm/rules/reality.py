"""Whether callers mean what they say, and mean it of their own matters: nothing supposed,
quoted or wished by others.
"""

from aftercall.llm.rules.cue import Caseless, Cue
from aftercall.llm.rules.memo import remember
from aftercall.llm.rules.sentences import Clause, body_of
from aftercall.llm.rules.verbs import IMPERATIVE

# "Poppy wants to swap, but she can ring you herself": their matter, not the caller's.
_THEIR_OWN = Cue(
    r"\b(?:he|she|they)(?:['’](?:d|ll)| can| could| should| will|['’]s going "
    r"to)\b[^.!?]*\b(?:himself|herself|themselves|themself)\b"
)
_THEN_I_WILL = Cue(
    r"(?:and |but |so |well )*if (?:i|we|it|they|he|she|that|my|the)\b[^.!?]*\b(?:i"
    r"|we)(?:['’]ll| will|['’]m going to)\b(?! (?:need|want|"
    r"like))"
)
HYPOTHETICAL = Caseless(
    r"^(?:and |but |so |well )*if\b(?! you (?:would|do)n['’]?t mind)[^,.]*\b(?:nobody|no one"
    r"|again|never|keeps?|\w+n['’]t)\b|"
    r"\bif\b[^.]*\w+n['’]t\b[^.]*\bi['’](?:ll|m going to)\b|\byou['’]ll be hearing from\b|\bi "
    r"swear\b|\bif\b[^,.]*\bever\b|"
    r"\bif (?:i|we)['’]d\b(?! (?:like|rather|better))|\bif (?:i|"
    "we) (?:ever|were|was|decided?|did|do go|had|won|could ever|end up|go back|went|wanted"
    r"|needed|don['’]t)\b|"
    r"\bif (?:it|this|that|they)(?:['’]s|['’]re| is| are) not\b|\bif (?:it|"
    "this|that|he|she|they|you) (?:ever|keeps?|were|was|happens? again|don['’]t(?! mind)"
    r"|doesn['’]t)\b|"
    r"\b(?:some other|another) time\b|\b(?:some ?day|one of these days|one day|down the "
    "(?:road|line)|at some point|"
    r"eventually|^next time\b|next time (?:maybe|perhaps)|maybe next (?:time|year|month|week))\b|"
    r"\b(?:i|we|he|she|they) (?:might|may)\b|\b(?:i['’]m|i was|we['’]re|we were|been) (?:just "
    "|still |only )?(?:thinking (?:of|about)|"
    r"considering|toying|debating)\b|\bsuppos(?:e|ing) (?:i|we)\b|\bhypothetically\b|"
    r"\bwhat if\b|\bi (?:would|['’]d) (?:probably|maybe|have you)\b|\bone day\b"
    r"|\bwould(?:['’]ve| have)\b|\bi used to\b|"
    r"\bwhen i was (?:a|young|little)\b|\bor (?:else )?i(?:['’]ll|['’]m going to)\b"
    r"|\botherwise i\b|"
    r"\bwe(?:['’]d| would) (?:probably|maybe)\b|\bunless\b|\bi wish (?!to\b)",
)
_TO_THE_MACHINE = Cue(
    r"\b(?:ignore|disregard|forget|override|bypass) (?:all |any |every |everything |of |your "
    "|the |my |these |previous |"
    r"prior |earlier |above )*(?:instructions?|rules|prompts?|guidelines|programming)\b"
    r"|\bsystem prompt\b",
)
_SPEAKER = (
    "(?:(?!(?:i|we|you|that|this|what|who|it|which|and|but|can|could|would|will|please|should"
    "|may|must|do|does|did|"
    r"to|then|just|let|if|when)\b)(?:my (?:\w+[ -]){0,2}\w+(?: in law)?(?:,? [A-Z]\w+,?)?|(?:he|"
    "she|they|everyone|everybody|somebody|someone|people|the (?:boss|doctor|neighbou?rs?|wife"
    "|husband|kids|guy|lady|man|"
    r"woman))|[A-Z]\w+(?: [A-Z]\w+)?(?: (?:from|at|in) (?:the )?\w+(?: \w+)?)?))"
)
_WISHES = (
    "(?:says?|said|wants?|wanted|asks?|asked|asking|thinks?|reckons?|told me|tells me"
    "|suggested|suggests|keeps? (?:asking|"
    r"going(?! (?:off|out|down|up|on|wrong|dead|blank|slow))|"
    r"saying|telling)|(?:(?:is|are|['’]s) going to|will|might|may) (?:\w+ ){0,4}(?:ask|want)"
    "|would like|['’]d like|would love|"
    r"would prefer|is asking|is always|insists|recommended|figures|mentioned|"
    "was saying|was asking|(?:has|have|['’]s|['’]ve) been (?:saying|telling|asking|nagging"
    r"|on at)|(?:keeps?|kept|is|was) (?:\w+ing) "
    r"(?:me|us|on at)|nags?|wishes|begged|hopes)"
)
# "She goes book me a flight": their words, quoted; but she may also just go to school.
_QUOTES = (
    rf"(?:(?:goes|went)(?=,|\W*$| (?:{IMPERATIVE}|oh|no|well|hey|like|you)\b)|(?:is|was|were) "
    "(?:all )?like(?! (?:a|an|"
    r"the|my|that|this)\b)|"
    r"(?:keeps|kept) (?:going on|on at me)|(?:yells?|shouts?|shouted|yelled))"
)
THIRD_PARTY = Cue(
    f"^(?:(?:he|she|they),? )?{_SPEAKER}(?:,? (?:he |she |they )?(?:also |just |always "
    f"|keeps )?(?:{_WISHES}|{_QUOTES})|"
    "['’]s (?:all |been |always |forever )*(?:after|at me|on at me|looking for|hoping|like"
    "|saying|asking|telling me)(?! (?:a|an|"
    r"the|my|that|this|"
    r"me)\b))\b(?! (?:me to ask you|"
    r"i could|i can|i should call|"
    r"to call you|to ask you))",
)
_I_ASKED = Cue(r"^(?:i|we|you)\b")


@remember
def is_unreal(text: str) -> bool:
    return bool(HYPOTHETICAL.occurs(text) or _TO_THE_MACHINE.search(text))


@remember
def is_others_wish(text: str) -> bool:
    body = body_of(text)
    return bool(THIRD_PARTY.match(body)) and not _I_ASKED.match(body)


def is_real(clause: Clause) -> bool:
    """Whether the caller means it, and means it of their own matters: nothing supposed, wished
    by others or left to them.
    """
    return _is_meant(clause.text, clause.whole)


@remember
def _is_meant(text: str, sentence: str) -> bool:
    return not (is_unreal(text) or is_others_wish(text) or _is_not_now(sentence))


def _is_not_now(sentence: str) -> bool:
    """Said of what others do themselves, or of what the caller would do if something happened."""
    return bool(_THEIR_OWN.search(sentence) or _THEN_I_WILL.match(sentence))
