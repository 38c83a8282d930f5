"""How callers ask: modal questions, wishes, orders, and the forms that look like them and are
none.
"""

import re
from dataclasses import dataclass, replace

from aftercall.llm.rules.cue import Cue, Table, words_of
from aftercall.llm.rules.memo import remember
from aftercall.llm.rules.numbers import NUMBER_WORD
from aftercall.llm.rules.reality import is_others_wish, is_unreal
from aftercall.llm.rules.sentences import body_of
from aftercall.llm.rules.verbs import IMPERATIVE, NEEDED, SERVICE, THROUGH_US

_OBJECT = (
    "(?=(?:me|us|my|our|the|a|an|it|that|this|these|those|them|him|her|his|their|your"
    "|somebody|someone|another|any|some|all|"
    r"both|in|up|out|off|down|back|to|for|with|about|at|into|on|over|"
    "two|three|four|five|six|one|half|more|extra|every|each|whoever|everyone|everybody|new"
    r"|\d+|(?-i:[A-Z][\w'’]+)|(?:coffee|"
    r"milk|bread|flowers|[a-z]{3,}s)(?= (?:for|to|from|on|in|with)\b)|[a-z]+(?: [a-z]+)? (?:on"
    r"|to) (?:the|my|our))\b)"
)
# What a thing wanted begins with: "a", "my", "the two", "ten kilos of".
_A_THING = rf"(?:an?|the|my|our|some|another|more|new|half|any|{NUMBER_WORD}|\d+)"
_HELPERS = (
    "(?:please |just |maybe |also |possibly |perhaps |quickly |then |kindly |go ahead and "
    "|try to |try and )*"
)
_SOMEBODY = (
    "(?:you(?: guys| all)?|somebody|someone|anybody|anyone|one of you|your (?:team|people"
    "|guys|colleague|manager)|"
    r"(?-i:(?:(?:Dr|Mr|Mrs|Ms|Miss|Father|Sister|Doctor|Nurse|Professor|"
    r"Reverend)\b\.? )?(?!I\b)[A-Z][a-z]+(?: [A-Z][a-z]+)?)|a (?:human|person|manager|nurse"
    "|doctor|technician|"
    r"colleague|real person|supervisor)|(?:the|"
    r"your) [a-z]+(?: team| desk| department)?|they)"
)
_LESS = r"(?:\w+ly )?"

_YOU = r"(?:you(?: guys| all| lot)?|somebody|someone|anybody|anyone|one of you)"
_SOFTLY = (
    "(?: (?:be able to|possibly|please|just|maybe|also|perhaps|kindly|quickly|then|uh+|um+"
    "|go ahead and|try to|try and))*"
)
# The frames in which one person asks another to do something, whatever it is: "I wonder if you
# could …", "I must ask you to …".
_YOU_DO = (
    rf"\b(?:(?:can|could|would|will|might) {_YOU}{_SOFTLY}|"
    "(?:if|whether|that|think|way|chance|hoping|wondering|wonder|suppose)(?: maybe| "
    f"perhaps)? {_YOU}(?:['’]d|"
    rf" can| could| would| might| (?:were|are) able to){_SOFTLY}|"
    f"(?:need|want|like|ask|asking|get|trouble|bother|for)(?: for)? {_YOU}(?: to)?{_SOFTLY}"
    "|(?:don['’]?t|"
    rf"do not) forget to|make sure (?:you|to)|be sure to|"
    "why don['’]?t you|be (?:a (?:love|dear|star|sport|darling|doll)|so kind(?: as)?|an "
    "angel) (?:and|to)|do me a favou?r(?:,? and)?),? "
    rf"(?P<act>{IMPERATIVE}\b(?! (?:is|are|was)\b).*)"
)

# Each gives the act as `act`: what is wanted, from its verb or noun on.
_ANYWHERE = tuple(
    Cue(pattern)
    for pattern in (
        r"\b(?:would|do|wouldn['’]?t|don['’]?t) (?:you )?mind (?P<act>\w+ing\b.*)",
        (
            rf"\b(?:can|could|would|will) {_SOMEBODY} {_HELPERS}(?P<act>(?:be (?:sure|so kind)"
            f"|{IMPERATIVE}|come|go|see|help|show|"
            r"translate|explain|let|speak|do)\b.*)"
        ),
        (
            rf"\b(?:can|could) you {_HELPERS}(?P<act>(?!believe|imagine|guess|recommend|park"
            r"|eat|guarantee|see|hear|do\b|be\b|"
            rf"tell me|remember|accept|afford|smell|still)[a-z]{{3,}} (?:the|my|our|a|an|it"
            "|that|this|them|him|her|me|us|some|two|"
            r"three|[A-Z])\b.*)"
        ),
        (
            r"\b(?:would|will|are) (?:you|somebody|someone) (?:be )?(?:able|willing|happy|free) "
            f"to {_HELPERS}(?P<act>.+)"
        ),
        # "I need Sam to call me", "we want the van to be ready"
        (
            r"\b(?:i|we)(?:['’]d| would)? (?:really |just |also )?(?:want|need|like) (?!to\b|you\b|"
            r"nothing)(?P<act>(?:(?-i:(?:(?:Mr|Mrs|Ms|Miss|Dr)\.? )?[A-Z])\w+(?: himself| "
            "herself)?|(?:the|my|our|your|"
            r"one of|an?) [\w ]{2,25}?|him|her|them|it|everything) to (?!know|see|hear|be "
            r"(?:honest|fair|sure))\w+.*)"
        ),
        (
            r"\b(?:i|we)(?:['’]d| would| do| really| still)* (?:want|need|like) "
            r"(?P<act>(?!to\b|you\b)(?:(?:my|"
            r"our|the|this|that|these|those|all) )?[\w ]{2,30} (?:back|done|"
            r"(?!need|feed|speed)[a-z]{3,}ed|sent|put right|taken off|cut|redone|sorted out)\b.*)"
        ),
        rf"\b(?:i|we) wish to (?P<act>{NEEDED}.*)",
        (
            r"\b(?:(?:wondering|hoping|to (?:see|ask|find out|check)) (?:if|whether|that)?"
            "|(?:any|is there any) (?:chance|way)(?: that)?|"
            "would it be (?:possible|okay|ok|all right) if) ?(?:you|somebody|someone|anyone"
            "|we|i|they) "
            rf"(?:can|could|might|would|were able to|are able to) {_HELPERS}(?P<act>.+)"
        ),
        (
            rf"\b(?:can|could|may|might) (?:i|we) {_HELPERS}(?P<act>(?!bring(?! [\w "
            rf"]{{2,20}}? in\b)|come (?!in|by|over|round|for|and "
            rf"see))(?:{THROUGH_US})\b.*)"
        ),
        (
            r"\b(?:i|we)(?:['’]d| would)? (?:really |just |also |still |actually )?(?:want"
            "|wanted|need|like|love|prefer|"
            "expect)(?: for)? (?:you(?: guys)?|somebody|someone|a human|a person|a real "
            "person|a manager|a technician|"
            r"an engineer|a nurse)(?: (?:from|in|at|with|else)(?: [\w'’]+){0,3})? to (?P<act>.+)"
        ),
        (
            r"\b(?:i|we)(?:['’]d| would) (?:really |also |just |still |actually |definitely "
            rf")?(?:like|love) to (?P<act>{THROUGH_US}\b.*)"
        ),
        (
            r"\b(?:i|we) (?:really |also |just |still |actually |do |did )?(?:want|wanted"
            "|wanna|need|needed|was hoping|"
            rf"were hoping)(?:(?<=wanna)| to) (?P<act>{NEEDED}.*)"
        ),
        (
            r"\b(?:i|we)(?:['’]d| would| just| really| also| still)* (?:want|wanted|like|wanna"
            "|was hoping|were hoping|wish)(?:(?<=wanna)|"
            r" to) "
            rf"(?P<act>{IMPERATIVE} (?:my|our|a|an|the|this|that|these|about|for)\b.*)"
        ),
        rf"\b(?:i|we)(?:['’]ve got to| have to| must| gotta|['’]ll have to) (?P<act>{SERVICE}\b.*)",
        (
            r"\b(?:i|we)(?:['’]d| would) (?:really |also |just |still )?like "
            rf"(?P<act>(?:{_A_THING}|that|to be)\b.*)"
        ),
        (
            r"\b(?:i|we) (?:really |also |just |still |actually |do |did |urgently )?(?:want"
            "|need|require) "
            rf"(?P<act>(?:{_A_THING}|that|it|this|him|her|them|everything|\w+ing)\b.*)"
        ),
        (
            r"\bi(?:['’]m| am)? (?:calling|ringing|phoning|here|looking|trying|hoping|just "
            "calling|just trying)(?: today)? (?:to|"
            rf"in to|up to) (?P<act>{THROUGH_US}\b.*)"
        ),
        (
            r"\b(?:i|we)(?:['’]m| am|['’]re| are|['’]ve been| was| were) (?:looking for|after"
            "|hoping for|in need of) "
            rf"(?P<act>(?:{_A_THING}|something)\b.*)"
        ),
        (
            r"\b(?:i|we)(?:['’]ll| will|['’]d|['’]m going to|['’]re going to|['’]m gonna"
            "|['’]re gonna) need "
            rf"(?P<act>(?:{_A_THING}|it|someone|somebody)\b.*)"
        ),
        (
            r"\b(?:i|we)(?:['’]d| would) like (?P<act>(?!to\b|that\b|it\b|this\b|you\b|if\b"
            r"|for\b|very\b|nothing|anything|"
            r"something)[a-z]{3,}(?: |[.,!]|$).*)"
        ),
        (
            r"\b(?:i|we)(?:['’]d| would) (?:want|be wanting) (?P<act>(?:a|an|the|some|something"
            r"|two|three|it)\b.*)"
        ),
        r"^(?P<act>(?:a )?party of \w+\b.*)",
        (
            r"\b(?:i|we) (?:could|can) (?:really )?(?:use|do with) (?P<act>(?:a|an|some|the"
            r"|another)\b.*)"
        ),
        (
            r"\b(?:let me|lemme|gimme|give me|i['’]ll) (?:get|have|order)? ?(?P<act>(?:a|an"
            "|two|three|four|one) (?!sec|second|"
            r"minute|moment|chance|call|ring|break|few|bit|idea|look|think)\w+.*)"
        ),
        (
            r"\b(?:we|i)(?:['’]re|['’]m| are| am) (?:looking|hoping|trying|wanting|calling) to "
            f"(?P<act>{NEEDED}.*)"
        ),
        (
            r"\b(?:can|could) (?:it|that|he|she|they|the \w+|my \w+(?: \w+)?) be "
            "(?P<act>(?:moved|changed|pushed|delivered|sent|"
            r"collected|later|earlier|fixed|picked up|done|ready|cancelled|booked|seen)\b.*)"
        ),
        (
            r"\b(?:can|could|would) (?:it|that|they|the \w+|my \w+|he|she|your \w+) "
            "(?P<act>(?:come|arrive|go|happen|start|wait|be seen) .+)"
        ),
        (
            r"\b(?:somebody|someone)(?:['’]s got to| has to| has got to| needs to| should| must| "
            "will have to|['’]ll have to) (?P<act>.+)"
        ),
        (
            r"\b(?:you can|you could|you may|you might|maybe you could|i need you guys to) "
            f"{_HELPERS}(?P<act>(?:remind|"
            "send|tell|put|book|add|email|text|call|cancel|leave|move|let|make|order|schedule"
            "|set|note|file|charge|deliver|"
            r"forward)\b.*)"
        ),
        (
            r"\bplease (?P<act>(?!don|do not|hold|wait|tell me\b|stop (?:it|that)\b"
            rf"|be\b){IMPERATIVE}\b.*)"
        ),
        (
            r"(?<!\bto )(?<!['’]ll )(?<!will )(?<!must )(?<!phone )\b(?P<act>(?:remind|nudge"
            "|ping) (?:me|"
            r"us)\b(?!,? (?:again,? )?(?:what|how|when is|where|which|who|why|is|are|do|does"
            r"|did|,)\b)(?!,).*)"
        ),
        # "We need lunch for thirty on Tuesday."
        (
            r"\b(?:i|we)(?:['’]ll| will|['’]d| would)? (?:need|want|like|require) "
            r"(?P<act>(?!to\b|you\b|him\b|"
            r"her\b|it\b|that\b|this\b|them\b|some\w+|any\w+|nothing|"
            r"no\b|more\b|not\b|what\b|how\b)[a-z]{3,}(?: [a-z]{3,})? (?:for|on|by|at) .*)"
        ),
        r"^(?:don['’]?t|do not) forget to (?P<act>(?!be\b|tell me\b)\w+ .+)",
        (
            "^(?P<act>(?:(?:don['’]?t|do not) let me forget|pencil (?:me|us) in|fit (?:me|us) in"
            r"|squeeze (?:me|us) in)\b.*)"
        ),
        (
            r"\bi(?:['’]d| would) (?:really )?appreciate (?:it if (?:you|someone|somebody) "
            "(?:could|would|can) )?(?P<act>.+)"
        ),
        # As people say it who learn the language: "i want make appointment".
        (
            r"\b(?:i|we)(?:['’]d| would)? (?:just |also |please )?(?:want|need|like|wish)(?: "
            f"to)? (?P<act>(?:{SERVICE}|buy|"
            r"repair|fix|send|"
            r"make (?:an? |the )?(?:\w+ )?(?:appointment|reservation|booking|order|payment"
            r"|complaint|change))\b(?! (?:is|was|number)\b).*)"
        ),
        (
            r"\b(?:is|would)(?: it| that)?(?: be)? possible (?:for (?:you|someone|me|us) )?to "
            f"(?P<act>{NEEDED}.*|{IMPERATIVE} {_OBJECT}.*)"
        ),
        r"\bany (?:chance|way) (?:of|you could|you can|i could|i can|we could|we can) (?P<act>.+)",
        (
            r"\b(?:what i (?:did |do |really )?(?:want|need|wanted)|what we need)(?: is|['’]s| "
            "was) (?:for you to |to )?(?P<act>.+)"
        ),
        (
            r"\b(?:let['’]s) (?P<act>(?:book|schedule|reschedule|order|cancel|add|move|set up"
            "|arrange|get (?:the|a|an|my|"
            r"our) .* (?:in|on|into))\b.*)"
        ),
        (
            r"\b(?:he|she|(?:my|our) (?:\w+ )?\w+|(?-i:[A-Z][a-z]+)) needs (?P<act>(?:a|an|his"
            "|her|some|more|another|new|"
            r"to (?:be seen|see|have|get))\b.*)"
        ),
        (
            r"\b(?:has|have|needs?) to (?P<act>(?:go out|be (?:sent|done|booked|paid|fixed"
            "|delivered|shipped|ready|collected|"
            r"filed|submitted|cancelled|moved|replaced|picked up))\b.*)"
        ),
        # "You must revoke it."
        (
            r"^you(?:['’]ll| will)?(?:['’]d better| must| have to| need to| gotta|['’]ve got to) "
            r"(?P<act>(?!know|understand|see|be\b|have\b|remember|try|hear|think|believe"
            "|imagine|tell me)[a-z-]{3,} "
            r"(?:it|that|this|them|him|her|me|us|my|our|the|an?|(?-i:[A-Z])\w+)\b.*)"
        ),
        (
            r"\b(?:i|we) (?:need|want|have|would like) to (?P<act>[a-z]+ (?:[\w'’-]+ ){0,4}(?:with"
            r"|at) (?:you|y['’]all|you guys)\b.*)"
        ),
        # "You send it, it's in the folder."; "the invoice needs paying"
        (
            "^you (?P<act>(?:send|tell|ring|call|put|give|order|book|ask|let) (?:it|that|them|him"
            r"|her|this|the|me)\b.*)"
        ),
        (
            r"^(?P<act>(?:the|my|our|this|that|those) [\w' -]{2,40}? (?:needs?|wants?|could "
            "do with) (?:paying|doing|fixing|ordering|"
            r"booking|"
            "sorting|sending|changing|cleaning|moving|replacing|renewing|cancelling|chasing"
            r"|returning|updating|collecting|servicing)\b.*)"
        ),
        r"\b(?P<act>put (?!it\b|that\b|the\b)[\w ]{2,20}? down (?:for|as)\b.*)",
        (
            r"\b(?:i|we)(?:['’]d| would) (?:rather|prefer|sooner)(?: that| if| have)? "
            r"(?:somebody|someone|a \w+)(?: could| would| to)? "
            r"(?P<act>(?!else)\w+ .*)"
        ),
        r"\bmake sure (?P<act>(?!you (?:get|have|take|rest)|i\b|i['’]|we\b|we['’]).+)",
        (
            r"\b(?:i|we)(?:['’]d like| would like| need| want| require|['’]re after|['’]ll "
            "need) (?P<act>(?!this|his|hers|yours|"
            r"is\b|things|as\b|always|glasses)[a-z]{3,}s\b .*)"
        ),
    )
)
_WAYS = Table((cue, None) for cue in (Cue(_YOU_DO), *_ANYWHERE))
_FRAGMENT = Cue(
    r"^(?P<act>(?:an?|one|two|three|four|five|six|\d+|some|another|half a|the) [\w "
    r"'’-]{3,80}),? please\b|^i['’]ll (?:take|"
    r"have) (?P<taken>(?:an?|the|two|three|some|one)\b.*)|^(?P<plain>(?:table|room|taxi|cab"
    "|delivery|appointment|"
    r"reservation|booking|collection|pick-?up) (?:for|to|at|on) \w+.*)|^(?P<after>(?:an?|one"
    "|two|three|four|five|six|"
    r"\d+) (?:table|room|"
    r"ticket|tickets|appointment|large|small|medium|dozen)\b.*)",
)
# "And a late checkout, if possible": a further wish without its verb.
_ELLIPSIS = Cue(
    r"^(?P<act>(?:an?|one|two|three|four|five|six|\d+|some|another|half a|extra|more) "
    r"(?!thirty|fifteen|forty|o['’]?clock|[ap]\.?m)"
    r"[\w '’,-]{3,80})[.?!]*$",
)
_GOES_ON = Cue(r"\b(?:and|also|plus)\b")
_STATES = Cue(
    r"\b(?:is|are|was|were|am|have|has|had|do|does|did|will|would|can|could|should|said|says"
    "|came|went|got|makes?|i|"
    r"we|he|she|they|it|you)\b|['’](?:s|m|re|ve|ll|d|t)\b|"
    "^(?:a (?:lot|bit|few|while|couple|friend|question|quick|minute|second|moment)|one "
    r"(?:more|of|thing|day|last)|two (?:of|things))\b",
)
_WHEN = Cue(r"(?:when|once|after|as soon as)\b")
_ORDER = Cue(
    f"^{_LESS}(?P<act>{IMPERATIVE} (?:(?:please|today|tomorrow|still|also|kindly|now) "
    rf")?{_OBJECT}.*|(?:put|add|block|enter) [\w' "
    rf"]{{3,40}}? (?:in|into|on|to|onto) (?:the|my|our) (?:\w+ )?"
    r"(?:calendar|diary|schedule|list|account|bill|tab|order|file|agenda)\b.*|(?:note that"
    "|get hold|follow up|file|log|note) .*|(?:book|"
    r"cancel|order|chase|fix|print|"
    "schedule|reschedule|send|email|add|buy|move|find|arrange|reserve|refill|renew|text"
    r"|tell) (?!is\b|was\b|are\b|number|"
    rf"only|volume|club|id\b|or\b|and\b|confirmation|addresses|messages?\b|works?\b)[a-z]{{3,}}.*)",
)

_NO_ASKING = Cue(
    r"^(?:remind (?:me|us)(?:,| again\b|,? (?:what|how|where|which|who|why|is|are|do|does"
    r"|did)\b)|(?:your (?:help|"
    r"time)|that|all|everything|any help)\W*$|tell a (?:lie|story)|keep (?:it|that|this) "
    "(?:between|"
    "to yourself|quiet|secret|private|in mind|confidential)|(?:email|text|call|phone"
    "|letter)s? only|hear|look (?:by|under|me up)|"
    r"hold (?:on|the line|"
    "a)|wait|repeat|say|spell|explain|speak(?! (?:to|with))|talk (?:up|slower|louder)|slow"
    r"|tell (?:me|us)\b(?! when (?:it|"
    r"they))|"
    "give (?:me|us) (?:a|one|two|just)? ?(?:sec|second|minute|moment|idea|hint|figure|rough)"
    "|take (?:care|your time|it easy|"
    r"my time|me through)|get (?:well|on with|it over)|let (?:me|us)\b(?! know when| know if| "
    "know as)|"
    r"be\b(?! seen)|help\b(?! me (?:book|set|move|find))|have a (?:good|nice|great|lovely|look"
    "|think|minute|second|moment|question|"
    r"chat)|have (?:yourself )?an? (?:\w+ ){1,2}(?:day|one|night|evening|weekend|week"
    r"|afternoon|trip|holiday|time)\b|"
    r"keep (?:up|it|that|them|things|(?:the|my|our) (?:\w+ )?\w+\W*$)\b(?! (?:for|aside|until"
    "|till|warm|an eye))|look up|read (?:it|that|"
    r"this|them|back)|transfer me|connect me|put me through|send (?:my|our) (?:love|"
    r"regards|best|thanks)|make (?:sense|it\b(?! to)|that\b|a decision|up my)|see (?:you|what|how)|"
    r"look (?:at (?:it|that|this|me|you|her|him)|it)\b|"
    r"know|thank|say\b|see about|hear|confirm|double-check|let it\b|read (?:me|us|out)|ask "
    "(?:me|us|you|a question|about|something)|"
    r"understand|"
    r"remember|think|go\b(?! (?:through|over|ahead))|get (?:to|going|off|back to|some (?:sleep"
    "|rest)|there|home|my head|up|out of|"
    "dressed|used)|have to|keep (?:well|safe|going|in mind)|call it|call me (?!back|at|on"
    "|when|if|tomorrow|later|today|this|"
    "next|after|before|tonight|about|once|as|and|in|by|every|to|with|any|regarding|again"
    r"|between|soon|or|a\b|please|first)|"
    r"show me|come (?:on|to think)|do\b(?! (?:it|that|the|a|my|this))|run (?:late|errands)"
    "|pick up (?:the|my) (?:kids|phone|"
    r"son|daughter)|leave (?:it|that|them)(?: (?:there|at that|alone|be|with (?:you|me)))?[.!]?$|"
    r"give (?!.*\b(?:call|ring|message|refund|discount|credit|note|bell|heads up|shout|copy"
    "|update|nudge|reminder|buzz|text|"
    r"prod)\b)|turn (?:left|right|up|"
    r"out)|set (?:for|on)|get (?:it|that|them)[.!]?$|see\b(?! (?:dr|doctor|the|a|my|someone"
    "|somebody|him|her|[a-z]+ (?:about|"
    r"for|on))))",
)
_PRICE_OR_FACT = Cue(
    "^(?:get|have) (?:your|the|a|an) (?:rough |quick )?(?:address|hours|opening hours|phone "
    "number|price|prices|idea|"
    r"estimate of|name|moment|second|minute|question|word|feeling|look|chance)\b|"
    "^(?:a |an )?(?:some |any )?(?:sleep|peace|advice|answers?|date|word with|explanation"
    "|information|clarity|"
    r"sympathy|minute|second|moment|idea|word|"
    r"question|break|favou?r|bit|lot|(?:\w+ )?drink|quick question|while|reason|job|life|drink"
    r"|holiday|vacation|nap|rest)\b(?! (?:fixed|"
    r"booked|order))|"
    r"^(?:my|the|a|an) (?:\w+ )?(?:time to think|money(?! back)|coffee)\b|^(?:to|it)$|^have "
    r"(?:a lot|no|any|to|been|had|got)\b|"
    r"^get (?:one|some) (?:myself|elsewhere)",
)
# What need not be done, and what others say has to be.
_NEGATED = Cue(
    r"\b(?:(?:was|were) (?:going|about|gonna)(?: to)? ask(?: you| someone)?(?: to)?"
    "|(?:don['’]?t|do not) (?:need|"
    r"have|want)(?: you)? to|needn['’]?t|no need to|not asking(?: you)? to|"
    r"\b(?:do|did|does|why|how|when|should) (?:i|we) (?:really |actually |still )?(?:need|have"
    "|want)(?: to)?|"
    "(?:saying|says|said|told me|tells me|told us)(?: that)? (?:i|we) (?:need|have|should"
    r"|must)(?: to)?) (?:\w+ )?$",
)
# A negation right before the asking: "I didn't think anyone'd pick up", "no, don't remind me".
_NOT = Cue(r"(?:n['’]t|\bnever|\bnot|\bdo not|\bwithout|\bno need to)\s*$")
# "Can you book the, or, do you…": broken off before anything was named.
_BROKEN_OFF = Cue(r"[\w-]+ (?:the|an?|my|our|your|some|to)(?:[,.…-]|\W*$)")
_OWN_DOING = Cue(
    r"\b(?:myself|ourselves|on my own|that['’]s on me|that['’]s mine|i['’]ll (?:do|handle|sort"
    "|remember)|on the website|"
    r"online)\b",
)

_HESITATES = re.compile(
    r"(?<=\w)(?:[,…]|\.\.\.)? (?:u+h+m?|u+m+|e+r+m?)\b[,…]? (?=\w)", re.I
)
_FILLERS = frozenset(("uh", "um", "er", "erm", "uhm", "umm", "uhh"))
_HESITATION = re.compile(r"(?:u+h+m?|u+m+|e+r+m?)[,…]?", re.I)
_EMPHATIC = Cue(rf"^(?:do|one|two|three|four|five|number \w+)[,:]? (?={IMPERATIVE}\b)")
# "Need a car to the station": the speaker goes without saying.
_NO_SUBJECT = Cue(
    "(?:need|needed|want|wanted|would like|looking|hoping|wanting|calling|ringing|phoning"
    "|after|was hoping|"
    r"was wondering|just wondering)\b",
)

# "Where can the driver put the bus?" asks for an answer.
_INQUIRES = Cue(
    "(?:where|which|who|why|what|how(?! about| soon))(?:['’]s)? (?:can|could|do|does|did"
    r"|should|would|will|is|are|was)\b"
)


@dataclass(frozen=True, slots=True)
class Trigger:
    act: str
    """What is wanted, verbatim, from its verb or noun on."""
    words: str
    """The asking and the act, verbatim."""
    is_order: bool
    is_fragment: bool = False
    """A bare thing ("two tickets, please"): a request, unless it answers a question."""


@remember
def find_trigger(text: str) -> Trigger | None:
    """The wish a clause carries, if it asks for anything that could outlast the call."""
    if found := _wish_in(text):
        return found
    if _FILLERS.isdisjoint(words_of(text)):
        return None
    fluent = _HESITATES.sub(" ", text)
    if fluent == text or not (found := _wish_in(fluent)):
        return None
    return replace(
        found, act=_as_said(found.act, text), words=_as_said(found.words, text)
    )


def _as_said(words: str, text: str) -> str:
    """The end of a text from so many words on, hesitation put back."""
    spoken = [
        piece
        for piece in re.finditer(r"\S+", text)
        if not _HESITATION.fullmatch(piece.group())
    ]
    count = len(words.split())
    return (
        text[spoken[-count].start() :]
        if text.endswith(words.split()[-1]) and count <= len(spoken)
        else words
    )


def _wish_in(text: str) -> Trigger | None:
    body = _EMPHATIC.sub("", body_of(text))
    if _INQUIRES.match(body):
        return None
    lead = text[: len(text) - len(body)]
    if is_unreal(body) or is_others_wish(body):
        return None
    if (order := _ORDER.match(body)) and not _is_none(order["act"]):
        return Trigger(order["act"], body, is_order=True)
    if found := _in_frame(body) or (
        _in_frame(f"I {body}", 2) if _NO_SUBJECT.match(body) else None
    ):
        return found
    if (
        lead
        and (more := _ELLIPSIS.match(body))
        and _GOES_ON.search(lead)
        and not _STATES.search(body)
    ):
        return (
            None
            if _PRICE_OR_FACT.match(more["act"])
            else Trigger(more["act"], body, is_order=False)
        )
    if fragment := _FRAGMENT.match(body):
        act = (
            fragment["act"]
            or fragment["taken"]
            or fragment["plain"]
            or fragment["after"]
        )
        return (
            None
            if _PRICE_OR_FACT.match(act)
            else Trigger(act, body, is_order=False, is_fragment=True)
        )
    return None


def _in_frame(spoken: str, supplied: int = 0) -> Trigger | None:
    """The wish in any of the ways people ask; `supplied` is how much of the text was put in
    front of what was said.
    """
    for pattern, _ in _WAYS.of(spoken):
        match = pattern.search(spoken)
        if match and not (
            _is_none(match["act"])
            or _NOT.search(spoken[: match.start()])
            or _NEGATED.search(spoken[: match.start("act")])
        ):
            start = supplied if _WHEN.match(spoken) else max(supplied, match.start())
            return Trigger(match["act"], spoken[start:], is_order=False)
    return None


def is_asking(text: str) -> bool:
    return find_trigger(text) is not None


def is_own_doing(text: str) -> bool:
    return bool(_OWN_DOING.search(text))


def _is_none(act: str) -> bool:
    return bool(
        _NO_ASKING.match(act)
        or _BROKEN_OFF.match(act)
        or _PRICE_OR_FACT.match(act)
        or is_own_doing(act)
    )
