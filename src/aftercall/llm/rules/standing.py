"""Plain statements in the present tense that no narrower rule reads: "we eat at six", "the site
runs on WordPress".
"""

from collections.abc import Iterator

from aftercall.llm.rules.cue import Cue, Table
from aftercall.llm.rules.faults import is_fault
from aftercall.llm.rules.matters import is_bare_thing
from aftercall.llm.rules.sentences import Clause
from aftercall.llm.rules.triggers import find_trigger
from aftercall.model.reading import Category

_TALKING = (
    "(?:am|are|be|think|thought|know|knew|mean|meant|guess|suppose|see|saw|want|wanted|need"
    "|needed|hope|wonder|believe|"
    "understand|hear|heard|remember|appreciate|call|called|rang|ring|say|said|tell|told|ask"
    "|asked|agree|"
    "don['’]?t|didn['’]?t|doesn['’]?t|can|can['’]?t|could|couldn['’]?t|would|wouldn['’]?t"
    "|will|won['’]?t|shall|should|might|"
    "may|must|did|was|were|had|got|went|came|took|made|found|lost|bought|ordered|sent|spoke"
    "|paid|gave|left|tried|"
    "just|really|have|has|forgot|forget|promise|swear|bet|love|like|hate|prefer|wish|doubt"
    "|expect|figured?|reckon|assume|"
    r"apologi[sz]e|wanna|gotta|keep|look|feel|seem|sound|wait|go|[a-z]+ed)"
)
_WHEN = (
    r"\b(?:at (?:noon|midnight|night|half|quarter|\d+|one|two|three|four|five|six|seven|eight"
    "|nine|ten|eleven|twelve)|(?:till|"
    "until|before|after|by|from|between) (?:noon|midnight|lunch|dinner|breakfast|school|work"
    r"|half|\d+|one|two|three|four|"
    r"five|six|seven|eight|nine|ten|eleven|twelve|\w+day)|"
    r"during (?!the call)\w+|(?:in|over) (?:the )?(?:summer|winter|spring|autumn|mornings?"
    "|evenings?|afternoons?)|(?:mon|tues|"
    "wednes|thurs|fri|satur|sun)day (?:nights?|mornings?|afternoons?|evenings?)|on alternate"
    r"|the first \w+ of|at weekends|"
    r"for (?:lunch|years|twenty years))\b"
)
_SOMEONE = (
    r"(?:he|she|they|(?:my|our) (?:[\w-]+ )?[\w-]+|(?-i:(?!(?:What|That|It|There|This|The|You"
    r"|We|Which|Who|How)\b)[A-Z][a-z]+))"
)
_THING = (
    "(?:the|my|our|that|this) (?!(?:name|reason|thing|problem|issue|question|point|line|call"
    "|connection|number|address|best|"
    "only|first|last|other|rest|same|one|idea|bill|letter|order|answer|date|day|time"
    "|appointment|booking|delivery|parcel|"
    r"service)\b)[\w-]+(?: [\w-]+)?"
)
_PRESENT = (
    "(?:is|are|['’]s|has|have|runs?|goes?|comes?|uses?|opens?|closes?|shuts?|takes?|sits?"
    "|lives?|works?|starts?|ends?|"
    r"sleeps?|eats?|needs?|holds?|stands?|covers?|belongs?|supports?|sends?|hosts?|throws?)"
)

_TABLE: tuple[tuple[Category, str], ...] = (
    (
        "preference",
        (
            "^(?:please )?(?:don['’]?t|do not|never) (?!worry|bother|know|think|remember|have"
            "|forget|mind|need|want|understand|see|"
            r"get me|tell me|you|be |let|remind|it|we|i)\w+ \w+|\b(?:as long as|must be|has "
            r"to be|have to be|needs to be|no \w+ please)\b"
        ),
    ),
    (
        "routine",
        (
            "^(?:i|we)(?: (?:always|only|mostly|still|often|also))? "
            rf"(?!{_TALKING}\b)[a-z]+\b.*{_WHEN}"
        ),
    ),
    (
        "routine",
        (
            rf"^(?:{_SOMEONE}|{_THING}) (?!is\b|has\b|was\b)[a-z]+s\b.*{_WHEN}|^{_THING} (?:go"
            "|run|come|meet|open|"
            rf"close)\b.*{_WHEN}"
        ),
    ),
    (
        "routine",
        (
            "^(?:i|we)(?:['’]m|['’]re| am| are) (?:never|always|usually|mostly|normally|rarely"
            r"|only)\b"
        ),
    ),
    (
        "preference",
        (
            r"\b(?:reach|catch|get) (?:me|us|hold of me) (?:on|at|in|by|after|before)\b|^best "
            r"to\b|\b(?:i|we)(?:['’]d|"
            r" would) sooner\b|\banything but\b|\banyone (?:but|except)\b|^use my\b|^(?:i|we) "
            r"only\b|\bin large print\b|"
            r"^(?:[\w-]+ ){1,3}for me[,.]|\b(?:never|always) (?:on|in|at|with) (?:the|a|my)\b"
            r"|^we want (?:the|it)\b|"
            r"^i want it\b|\bmakes? me (?:ill|sick|sneeze|nervous)\b"
        ),
    ),
    (
        "person",
        (
            "^(?:i|we) (?:run|own|teach|manage|study|sing|volunteer|look after|care for"
            "|belong to|speak|play|foster|coach|"
            r"commute|rent|share|drive|farm|represent)\b"
        ),
    ),
    (
        "person",
        (
            "^(?:i|we)(?:['’]ve| have) been (?:a|an|with|coming|going|using|living|working"
            r"|married|here)\b|"
            r"\b(?:just )?(?:had a baby|got married|got engaged|adopted a|moved house)\b"
            "|^i(?:['’]m|"
            r" am) (?-i:[A-Z]\w+)['’]s \w+|^i(?:['’]m| am) (?:the|a|an) (?:new |old |\w+ "
            ")?(?:tenant|owner|manager|treasurer|"
            r"executor|caretaker|chair|head|director|student|customer|widow|member)\b"
        ),
    ),
    (
        "person",
        (
            "^(?-i:[A-Z][a-z]+) (?:left|joined|retired|moved|quit|started|resigned|married"
            r"|took over|lives|died)\b|"
            f"^{_SOMEONE}(?:['’]s| is| has|['’]s got| got) (?:a|an|got|only|nearly|away|off"
            "|in|on|from|our|very|quite|pretty|"
            r"six|seven|eight|nine|ten|\d+)\b|^(?:my|our) (?:youngest|eldest|oldest|other half"
            r"|contact|rep|driver|tenant)\b|"
            r"^(?:the|our) (?:tenant|owner|contact|manager|driver|caretaker)\b.*(?-i:\b[A-Z][a-z]+)"
        ),
    ),
    (
        "decision",
        (
            "^we(?:['’]re| are) (?:not )?(?!calling (?!off)|looking|trying|having|getting"
            "|waiting|wondering|thinking|talking|"
            "coming|hoping|planning|going (?:to be )?(?:away|out|there)|expecting|running"
            "|sitting|missing|just|still|losing|"
            r"being|paying)\w+ing\b|^we(?:['’]ve| have)? (?:scrapped|dropped|postponed|cut"
            "|killed|approved|chosen|moved|hired|"
            r"fired|signed|bought|dumped)\b|\bfinal answer\b|^(?:the|our) [\w ]{3,25}(?:['’]s"
            "| is| has|"
            " got) (?:been )?(?:moved|postponed|called off|cancelled|off|on hold|brought "
            r"forward)\b"
        ),
    ),
    ("technical", rf"^{_THING}(?: |(?=['’])){_PRESENT}\b"),
    (
        "technical",
        (
            "^it(?:['’]s| is| has| runs| uses| throws| takes| came) (?:a|an|the|on|wired"
            "|connected|rated|hooked|made|with|"
            r"\w+ing)\b"
        ),
    ),
    (
        "action_item",
        (
            "^i(?:['’]m| am) (?:seeing|meeting|flying|visiting|collecting|picking up|taking"
            "|driving|posting|starting|"
            r"dropping)\b.*\b(?:\w+day|tomorrow|tonight|next|this|the \w+)\b|^(?:i"
            r"|we)(?:['’]ve| have) still got to\b"
        ),
    ),
)
_STATES = Table((Cue(pattern), category) for category, pattern in _TABLE)
_ABOUT_THE_CALL = Cue(
    r"\b(?:you (?:said|told|guys)|on hold|calling|cut off|this line|the line|hear you|talking "
    "to|speaking|question|thank|"
    r"bad time|moment|minute)\b",
)
_ASKED_WHAT_IT_IS = Cue(
    r"\b(?:what|which) (?:make|model|kind|type|sort|version|system|size|device|car|brand|year"
    "|laptop|phone|router|"
    r"boiler|vehicle|machine|bike|printer|appliance|breed)\b|"
    r"\bwhat (?:is|are|does|['’]s) (?:it|the|that)\b|\btell me (?:about|more)\b",
)
_TELLS_OF_IT = Cue(
    "^it(?: (?:has|runs|uses|throws|takes)|['’]s (?:wired|connected|rated|hooked|running|made"
    r"|running))\b"
)
_LEAST = 3


def find_standing(clause: Clause, question: str) -> Iterator[Category]:
    """At most one reading; "it is a…" counts only where the agent asked what it is."""
    text = clause.body
    if (
        len(text.split()) < _LEAST
        or clause.is_question
        or _ABOUT_THE_CALL.search(text)
        or is_fault(text)
        or find_trigger(text)
    ):
        return
    for pattern, category in _STATES.of(text):
        if pattern.search(text) and (
            not text.lower().startswith("it")
            or _TELLS_OF_IT.match(text)
            or _ASKED_WHAT_IT_IS.search(question)
        ):
            yield category
            return
    if _ASKED_WHAT_IT_IS.search(question) and is_bare_thing(text.strip(" .,!"), "need"):
        yield "technical"
