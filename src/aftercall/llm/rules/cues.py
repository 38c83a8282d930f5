"""The turns of phrase that tell what a clause does to the requests on the floor."""

from aftercall.llm.rules.cue import Cue

ANAPHOR = Cue(
    r"^make (?:one|two|some|half|both) of (?:them|those|it)\b|^(?:put|seat|sit) (?:us|me) "
    "(?:near|by|at|in|next|"
    r"outside|inside|under|on)\b|^(?:[\w-]+ ){1,2}?(?:(?:it(?!['’]s)|them)|(?:that|this|those"
    "|these|"
    r"one(?! of\b))(?! (?:\w+ )?(?:day|week|month|morning|"
    "afternoon|evening|weekend|coming|monday|tuesday|wednesday|thursday|friday|saturday"
    r"|sunday)\b))(?:['’]s)?\b(?! (?:the|an?|my|our|some|"
    r"two|three|any|another) )|^(?:it|that|"
    r"them|this|one)\b|^(?:ready|moved|changed|pushed|delivered|collected|later|earlier"
    r"|picked up)\b|^(?:come|"
    "arrive|happen|start|wait|be (?:seen|moved|done|fixed|sent|collected|delivered|ready"
    r"|cancelled))\b",
)
RECORDS = Cue(
    r"^(?:log|file|put|note|write|report|record|mark|flag|add|jot|raise|get)\b (?:that|this|it"
    r"|those)\b.*\b(?:down|as|up|"
    r"(?:to|on|in|into|under) (?:the|my|our|an?|his|her|their|your|[\w-]+['’]s))\b",
)
TELLS_ONLY = Cue(
    r"^(?:tell|let|inform|notify|warn|ask)\b(?: (?:the|my|your|his|her))? ?\w+(?: \w+)?(?:, "
    r"(?-i:[A-Z])\w+)?(?: know)?"
    r"(?:,? (?:still )?(?:today|tonight|tomorrow|by \w+))?\W*$"
)
MOVES = Cue(
    r"^(?:move|reschedule|change|push|switch|shift|postpone|rebook|bump|bring forward)\b"
)
ENDS = Cue(r"^(?:cancel|stop|skip)\b")
MOVED_TO = Cue(r"\b(?:to|for|until|till|instead)\b[^,]{0,20}$")
THEN = Cue(
    r"\bthen\b(?=[?.!]*$)|\b(?:by|for|before) (?:then|that (?:day|date))\b|\bthat (?:day"
    r"|morning|afternoon|evening)\b"
)
AND_ALSO = Cue(
    r",? and (?=(?:on |in |the |next |this |tomorrow|tonight|by )[\w ]{0,25}?\bto \w+)"
)
INSTRUCTS = Cue(
    "^(?:ring|press|use|knock|leave|deliver|wrap|charge|include|put|write|make|park|ask for"
    r"|come|mention)\b"
)
REMEDY = Cue(
    "^(?:a |an |my |the |get a |have a |to get a |full )*(?:full |partial )?(?:refund"
    "|replacement|exchange|credit|money back|"
    r"new one)\b",
)
MINE = Cue(
    r"^i(?:['’]ll| will|['’]m going to) (?!take|come|be there|pick|need|have|go (?:for|with))"
)
CONTENT_DATED = Cue(
    r"^(?:tell|ask (?:\w+ ){1,3}(?:if|whether|about|what|when|how)\b|let \w+ know|say|inform"
    "|note|file a note|make a note|take a note|"
    r"send (?:a )?message|send \w+ a (?:message|"
    r"text)|leave (?:a )?message|pass|write)\b",
)
STOP = Cue(
    "^(?:(?:can|could|would) you (?:please |just )?|i(?:['’]d like| want| need) you to "
    "|i(?:['’]d like|"
    " want) to )?(?P<what>(?:please )?(?:don['’]?t|do not) (?:send|mail|call|ring|email|text"
    "|remind|bother|charge|contact|"
    r"phone|post|deliver)\b.*\b(?:any ?more|any longer|again|ever)\b.*|(?:please )?stop "
    "(?:sending|calling|emailing|texting|"
    r"charging|mailing|ringing|reminding|the|my|delivering|billing)\b.*|"
    r"no more \w+.*|take (?:me|us|my (?:name|number|address)) off\b.*|unsubscribe\b.*|remove "
    r"(?:me|us) from\b.*|(?:don['’]?t|"
    r"do not) want any ?more\b.*|i (?:don['’]?t|no longer) want to (?:get|receive|be on)\b.*)",
)
ASKS_WHEN = Cue(
    r"\b(?:when|(?:good|best|better|particular) (?:time|day|date)|what (?:day|date|time)"
    "|which (?:day|date|one)|how soon|by when|what "
    r"works|suits?|does that work|is that (?:ok|"
    r"okay|fine|good))\b",
)
HEAD = Cue(
    "^(?:by|on|for|from|at|before|it['’]s|so|the|this|next|tomorrow|today|any ?time|sometime"
    "|maybe|say|preferably|ideally|"
    r"around|in|ready)\b",
)
ANYTHING_ELSE = Cue(
    r"\b(?:anything|something|what) else\b|\b(?:is|will) that (?:be )?(?:all(?! right)"
    r"|everything)\b|\bhow (?:else )?(?:can|may) i help\b"
)
OPENS = Cue(
    r"\bwhat(?:['’]s (?:on your mind|up)| can i do| do you need| would you like me to do)\b"
    r"|\bready when you are\b"
)
IS_THAT = Cue(
    r"^(?:hi|hello|morning|good \w+|sorry|yes|,|!|\.| )*is (?:that|this) (?-i:[A-Z])[\w'’ ]+\?"
)
NOT_THAT = Cue(
    r"^(?:no\b(?!,? (?:problem|worries))|i['’]m afraid not|sorry,? (?:no|this)|afraid not|not "
    "quite)"
)
WRONG_NUMBER = Cue(
    r"\b(?:you(?:['’]ve| have)?(?: may have| might have| must have)?(?: got| reached| dialed| "
    "dialled| called)?|"
    r"i(?:['’]ve| have| must have)?(?: got| dialed| dialled| called| rang)?)"
    r" the wrong number\b(?! (?:for|on|in|of|down))|\b(?:called|rung|dialled|dialed|reached) "
    r"(?:us|me) by (?:accident|mistake)\b|"
    r"^(?:oh|sorry|my bad|whoops)?[,. ]*(?:sorry,? )?wrong number\b",
)
DICTATES = Cue(
    "^(?:(?:write|put)[,:]|(?:say|saying|just say|just put|just write|it should say|the "
    r"message is)\b)"
)
THEN_ALSO = Cue(r"(?:and |oh |um+ |uh+ )*(?:then|also|second|third|next|plus)\b")
NEW_POINT = Cue(r"^(?:and|also|then|oh|plus|okay|so)\b")
CALL_BACK = Cue(
    r"\b(?:call|ring|phone|speak|talk|human|call ?back|go through|contact)\b"
)
STARTS_NEW = Cue(
    r"^(?:and|also|oh|then|plus|can|could|would)\b|^(?:yes|yeah|okay|no)[, ]+(?:and|can|could)\b"
)
WISH = Cue(
    r"^(?:(?:i|we)(?:['’]d)? (?:like|want|need|prefer)|(?:can|could|may) (?:i|we) (?:have|get))\b"
)
ASKS_FOR = Cue(
    r"\b(?:what|which|who|where|when|why|how|name|number|address|spell|anything|or)\b"
)
REACHES = Cue(r"\b(?:call|ring|phone|text|email|contact|touch|message|write)\b")
SEND_SOMEONE = Cue(
    "^(?:send (?:someone|somebody|a |an )|come (?:out|and|over|round|by|have)|have (?:someone"
    "|somebody|a )|look|fix|sort|"
    "get (?:someone|somebody|it|that|this|a )|help|take a look|do something|arrange|open"
    r"|raise|log|report|file|put in)\b",
)
SMALL_TALK = Cue(
    r"\b(?:thank|thanks|bye|goodbye|cheers|how are you|you['’]re a star|have a (?:good|nice)"
    r"|hello\?|"
    r"are you there|can you hear)\b",
)
WILL_DO = Cue(r"(?:(?:sure|okay|of course|certainly),? )?(?:(?:i|we) will|will do)\W*$")
FAREWELL = Cue(r"(?:(?:we|i)(?:['’]ll| will) )?(?:see|talk to|speak to|look forward)\b")
# "Tell her I rang, and could she call me by Thursday?": still part of the message.
THEY_ARE_ASKED = Cue(
    r"(?:can|could|would|will|should) (?:he|she|they) (?:please |maybe |possibly )?(?P<act>.+)"
)
BELL = Cue(r"\bgive (?:me|us) a (?:bell|ring|call|shout)|get back to (?:me|us)\b")
TURNS = Cue(r"^(?:but|so|and (?:i|can|could|please))\b")
PLAIN_THING = Cue(r"(?:the|an?|it|that|one|two|three|some)\b")
REACH_ME = Cue(
    "(?:call|ring|text|email|phone|use|try|message) (?:(?:after|before|between|any ?time|in "
    r"the|not)\b|me\b|it\b|my\b|the\b|(?:his|her|"
    r"our|[\w-]+['’]s) (?:\w+ )?"
    r"(?:mobile|phone|number|cell|line|email|landline|office|desk|work|home|house|door)\b"
    r"|.*\bnot (?:mine|me|my|the)\b)",
)
PLACE = Cue(
    r"(?:(?:i(?:['’]ll take|['’]d like|['’]d prefer)|let['’]s do|make it) )?(?:the )?"
    r"(?:(?:first|earlier|former)|(?P<second>second|later|latter|last))"
    r"(?: (?:one|slot|option|day|date))?(?:,? please)?[.,!]?$",
)
# What a caller says first, so that the wish after it can be short: "I've got a sofa on order.
# Can I change the colour?"
CONTEXT = Cue(
    "^(?:i|we)(?:['’]ve| have| had| got|['’]m| am|['’]re| are| bought| ordered| booked| was| "
    "were| need| left| lost|"
    r" sent| live| run)\b(?! (?-i:[A-Z]))|"
    r"^they (?:still |also )?(?:owe|want|have|need|sent|said|told)\b|^(?:somebody|someone"
    "|nobody|people|some (?:kids|lads|idiot|one|"
    r"people))\b|"
    "^(?:my|our|the|it['’]s|it is|there['’]s|there is|that['’]s|she['’]s|he['’]s|we"
    r"|you)\b(?!.*\bname\b)(?! (?-i:[A-Z][a-z]+)\W*$)",
)
REFUSES = Cue(
    r"^(?:no|sorry|i['’]m afraid)\b[^.?!]*\b(?:i|we) (?:can['’]?t|cannot|don['’]?t|won['’]?t"
    r"|['’]m not able)\b|"
    r"\b(?:he|she|they|(?-i:[A-Z]\w+))(?:['’]d| would|['’]ll| will| should)(?: need| "
    r"have)?(?: to)? [^.?!]*\b(?:himself|herself|"
    r"themselves)\b",
)
WITH_PERSON = Cue(
    r"(?:have|get) (?-i:[A-Z][\w'’-]+)(?: again| this time| please| instead)*\W*"
)
IF_NOT_REACHED = Cue(
    r"\bif (?:you|they|he|she) (?:can['’]?t|cannot|don['’]?t) (?:get|reach|find|raise)\b"
)
STAYS = Cue(r"\b(?:stays?|staying|leave|leaving|no|not|nothing)\b")
STATES = Cue(
    r"(?:i|we|he|she|they|there|my|our|the|it|that)(?:['’]\w+)?\b(?!['’]?s? (?:fine|good|great"
    r"|right|all|it)\W*$)|"
    r"(?-i:[A-Z][a-z]+(?:['’]s)? [a-z]+|(?:[A-Z][\w'’]+ )?[A-Z][\w'’]+, )"
)
INTRODUCES = Cue(
    r"(?:it['’]s|it is|this is|i['’]m|i am|my name(?:['’]s| is)) (?-i:[A-Z])"
)
TAKES_OFF = Cue(r"\btake (?:me|us|him|her|them|it|that) off (?:it|that|the|this)\b")
# Asking what is free is not yet asking for it; with the agent's offer and a yes it becomes a
# booking.
INQUIRY = Cue(
    r"\b(?:do you have|have you got|have you|you got|is there|are there|any chance of|got any"
    r"|any)\b.*\b(?:table|tables|room|"
    r"rooms|slots?|space|spaces|openings?|availability|"
    "available|free|appointments?|anything|tickets?|seats?|places?|times?|left|earlier|later"
    r"|sooner)\b|\b(?:is|"
    r"are) (?:\w+ ){1,3}(?:free|available|in)\b|"
    r"\b(?:when|what)(?:['’]s| is| are| can| could| would| do)\b.*\b(?:earliest|soonest|next"
    "|available|come in|see me|see us|"
    r"fit|slot|appointment|opening)\b|\bhow soon\b",
)
TAKES = Cue(
    r"\b(?:i['’]ll (?:take|have) (?:it|that|the|them|those|both|one|two)|book (?:it|that|me)"
    "|put (?:me|us) (?:down|in)|let['’]s do|"
    r"let['’]s go|we['’]ll take|"
    r"that one|go for)\b",
)
HAS_FREE = Cue(
    r"\b(?:i|we|she|he|they|\w+)(?:['’]ve got| have| has| can| could)\b|\b(?:free|available"
    r"|open|opening|slot|gap)\b"
)
SUITS = Cue(
    r"\b(?:that (?:works|suits|would be|['’]d be|sounds)|works for me|suits me|that['’]s "
    "(?:fine|good|great|perfect|ideal|lovely)|"
    r"perfect|ideal|"
    r"yes please|i['’]ll take|book (?:it|me|that))\b"
)
DATED_FOR = Cue(r"^(?:(?:it|that|this)(?:['’]s| is| would be) )?(?:for|on|by|before)\b")
WHAT_TO_SAY = Cue(
    r"\b(?:what(?:['’]s| is| was) the message|what (?:should|shall|would|do|does|must) (?:i|we"
    "|you|it|"
    r"the \w+)(?: like)?(?: me| it)?(?: to)? "
    r"(?:say|tell|write|pass|put|read)|what would you like (?:it|me|us|the \w+) to say|(?:what|"
    r"anything) (?:would you like |to go )?on (?:the|it|your) "
    r"(?:card|cake|note|tag|label))\b",
)
SLOT = Cue(
    r"\b(?:(?:i|we|she|he|they|someone|somebody|(?:dr|mr|mrs|ms|miss)\.? \w+)(?:['’]ve got| "
    "have| has|['’]s got|"
    r" (?:can|could) (?:do|see|fit|come|offer|get|squeeze|send|have|be))|how about|"
    r"what about|shall we say|free|available|book you|put you|opening|slot|cancellation)\b|"
    "^(?:and |so |okay,? |then )*(?:tomorrow|today|next|the|on|this|(?:mon|tues|wednes|thurs"
    r"|fri|satur|sun)days?)\b.*(?:\?|"
    r"\bat\b|\bthen\b)|"
    r"\b(?:is|does|would|will) (?:the|next|this|tomorrow|(?:mon|tues|wednes|thurs|fri|satur"
    r"|sun)day)\b.*\?",
)
NO_SLOT = Cue(
    r"\b(?:(?:we|they|office|shop|store|desk)(?:['’]re| are| is)? open|opens|close|closes"
    "|closed|closing|hours|until|till|arrives?|"
    r"expires?|deadline|last|was|were|takes)\b"
)
# The agent speaks of a day to say that it is not to be had.
NOT_FREE = Cue(
    r"\b(?:closed|taken|full|booked (?:up|out|solid)|sold out|unavailable|not available|not "
    "free|nothing (?:left )?(?:on|for|free)|"
    r"(?:can['’]?t|cannot) (?:do|make|fit|offer)|no \w+ (?:on|for|this|that|until)|no (?:slots"
    r"|space|room|tables|appointments))\b",
)
# The caller takes up a day to turn it down or to ask on.
DEMURS = Cue(
    r"\b(?:not (?:good|great|ideal|possible|free|really|then|that|the|this|on|until|before"
    r"|able|sure|\w+day|today|tomorrow)|not\W*$|"
    "no good|can['’]?t|cannot|doesn['’]?t|don['’]?t|won['’]?t|isn['’]?t|too (?:late|early"
    "|soon|far)|instead|rather|busy|away|"
    r"working|earlier|later|sooner|else|other|hmm?)\b",
)
_HOURS = (
    "(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|noon|midday|midnight"
    r"|\d{1,2})"
)
TIME_ONLY = Cue(
    rf"^(?:at |the |say |half past |quarter (?:past|to) |then )*{_HOURS}(?: ?(?::\d\d"
    "|o['’]?clock|thirty|fifteen|"
    r"forty[- ]five|a\.?m\.?|p\.?m\.?|"
    r"in the \w+|one))*,?(?: (?:is |sounds |works |would be )?(?:good|fine|great|perfect"
    "|please|then|works|ok|okay|"
    r"yes|yeah|it is))*[.!,]*$",
)
HOUR = Cue(
    rf"\b(?:at|between|from) (?:about |around )?(?:half past |quarter (?:past|to) )?{_HOURS}\b"
    rf"|\b\d{{1,2}} ?[ap]\.?m\b"
)
ORDERS = Cue(
    "^(?:order|send|email|deliver|refund|post|ship|buy|copy|print|pay|transfer|file|submit"
    r"|update|change|refill)\b"
)
# "Do you have a cot?": not yet a wish, and one once the agent offers it.
ASKED_AFTER = Cue(
    "^(?:and |but |so |then |oh )*(?:do (?:i|we) get|do you (?:guys )?(?:have|do|offer|rent"
    "|sell|provide|stock)|"
    r"have you got|is there|are there|"
    r"(?:can|could) (?:i|we) (?:get|have)|any chance of|got)\b(?: (?:an?|any|some|the))?",
)
MEANS_IT = Cue(r"\b(?:it|that|one|them|those|some)\b")
COMPARES = Cue(
    r"\b(?:earlier|later|sooner|cheaper|else|free|available|anything|something|left|slots?"
    r"|openings?|tables?|times?)\b"
)
VISITS = Cue(
    "^(?:get|have|send|dispatch) (?:someone|somebody|an? |one of|our )|^(?:come|be|call|stop"
    r"|drop|look|fit|squeeze|swing)\b"
)
PRONOUN = Cue(r"(?:he|she|they|it|i|we)\b")
# The agent says that something is settled.
CONFIRMS = Cue(
    r"\b(?:all set|you['’]re (?:in|down|on)|done|got (?:it|that|you) down|i['’]ve (?:put|got"
    "|set|made|sent|marked|changed|updated|written)|"
    "(?:(?:is|are|was|been|have|has|['’]s|['’]re|['’]ve)(?: now| all| also| both)* )(?!closed"
    "|based|required|"
    r"needed|allowed|included|supposed|"
    "located|called|named|limited|expected|estimated|opened|interested|wanted|delayed|used"
    "|priced|listed|staffed|heated|loved|finished)"
    r"(?:[a-z]{2,}ed|put|set|sent|made|taken|written|paid|frozen|on the list)|"
    "^(?:booked|noted|added|scheduled|confirmed|moved|reserved|cancelled|changed|renewed"
    "|logged|blocked|frozen|"
    r"marked|updated|corrected|sent|"
    r"refunded|registered|recorded|ordered|[\w ]{3,25} (?:added|booked|cancelled|moved"
    r"|reserved|noted|changed|ordered)))\b",
)
CONDITION = Cue(r"(?:if|when|once|because|since|unless)\b")
TAKES_UP = Cue(
    r"\b(?:it|that|this|them|someone|somebody|the team)\b|\b(?:i|we)(?:['’]ll| will) (?:send"
    "|arrange|log|report|raise|"
    r"open|book|put|note|tell|ask|let|order|"
    r"get|fix|replace|look into|escalate|flag|pass|schedule|reserve|refund|add|rebook)\b",
)
ASSENT_ASKED = Cue(
    (
        r"\b(?:does that (?:work|suit)|would that (?:work|suit|be)|is that (?:ok|okay|all "
        "right|fine|good)|how(?:['’]s|"
        r" is| does) that)\b[^?]*\?"
    ),
)
FILES = Cue(
    r"\b(?:log|raise|open|put in|file|report|chase|follow up|find out|(?:take|put|add|sign"
    r"|book|move|fit) you\b|(?:send|get|have) "
    "(?:someone|somebody|an?|our|one of|the (?:team|crew|lads|boys|guys))|flag|escalate|look "
    r"into)\b|"
    r"\b(?:(?:work|job) (?:order|card)|ticket|complaint|replacement|refund|engineer|plumber"
    r"|crew|technician)\b",
)
POINTS = Cue(r"\b(?:it|that|this|them|him|her)\b")
OWN_PLAN = Cue(
    r"(?:i|we|he|she|they)(?:['’]ll| will|['’]d| would)\b|(?:i['’]m|it['’]s|that['’]s) (?:fine"
    r"|good|okay|ok|all|just|under)\b"
)
# All that follows in the turn is the message itself.
DICTATION = Cue(
    (
        r"\b(?:message|tell|text|note|say|write|email)\b[^.!?]{0,40}: |\b(?:take|write) "
        r"(?:this|that|a message) down\b|"
        r"\bhere['’]s the message\b"
    ),
)
ADDRESSED = Cue(
    "(?:(?:tell|ask|let|warn|call|ring|text|email|inform)|pass (?:it|that|this)(?: on| "
    "along)? to) "
    r"(?P<who>(?-i:[A-Z][\w'’-]+)|(?:the|your|my|our) \w+)\b",
)
ALL_DONE = Cue(
    "(?:the lot|it all|all of (?:it|them|that)|everything|both(?: of them)?|them all|the "
    "whole (?:lot|thing)|(?:it|them)(?= (?:back|"
    r"done|ready)))"
    r"(?: to be)? (?:done|ready|back|finished|sorted|delivered|here|in)\b",
)
DATED_THING = Cue(
    r"(?P<thing>(?:the|my|our|his|her|their|[\w-]+['’]s) [\w '’-]{2,30}?)(?: itself)?(?:['’]s"
    "| is| was| starts| ends| "
    r"falls)\b"
)
# "And the charger, can you send it?": what the sentence is about stands in front.
FRONTED = Cue(
    r"(?:(?:and|also|oh|then|so|now|but),? )*(?:the|my|our|that|those|this) (?:[\w'’-]+ ?){1,4}\W*"
)
COUNTS_ON = Cue(
    r"(?:and |oh |okay |so )*(?:one|two|three|four|five|six|second|third|fourth|next)\W*"
)
ASKS_HOURS = Cue(
    r"\b(?:what time|how late|till when|until when|are you (?:open|closed|there)|do you "
    r"(?:open|close|shut))\b"
)
TO_THEM = Cue(
    r"^(?:tell|ask|let|call|ring|text|email|give|warn|write(?: to)?) (?:him|her|them)\b"
)
KEEPS = Cue(
    (
        "^(?:(?:no|nah|actually|wait|hang on|hold on|please|then|just|leave (?:it"
        "|that))[,.]? )*(?:i['’]ll |let['’]s )?keep (?P<what>it|"
        r"that|them|"
        r"the \w+)\b"
    ),
)
CANCELS = Cue(r"\b(?:cancel|call off|take off|drop|stop|move|change)\b")
BARE_NO = Cue(
    r"(?:(?:so|but|please|no|and|well),? )*(?:don['’]?t|do not)(?: (?:do|you) (?:that|it|dare))?\W*"
)
IGNORE = Cue(r"\b(?:ignore|disregard) (?:that|it|this)\b")
# Something that stands from before the call.
ON_THE_BOOKS = Cue(
    r"\b(?:(?:i|we|he|she|they)(?:['’]ve| have|['’]s| has)?(?: got| had| still have)? "
    "(?:booked|ordered|reserved|arranged|signed|"
    r"an?|the|that|this|my|our|had|have|has)\b|on the books|booked (?:in|for)|on order|coming "
    "up|scheduled|down for)",
)
# A short answer that says nothing of its own.
SLIGHT = Cue(
    r"^\W*(?:(?:yes|yeah|yep|no|nope|nah|okay|ok|sure|right|good|great|fine|perfect|lovely"
    "|please|exactly|correct|hm+|oh|ha|haha|cool|nice|"
    "um|uh|hello|hi|hey|ta|cheers|sorry|wait|that one|either|both|whatever|me|same|twice"
    r"|barely|brilliant|grand|super|safe|alright)\W*)+$",
)
INSTEAD = Cue(r"\binstead\b|\brather than\b")
# The thing talked of will not do.
UNFIT = Cue(
    r"(?P<what>[\w '’-]+?) (?:won['’]?t do|(?:is|are)(?:n['’]?t| not| too) \w+|is no (?:good|use)|"
    r"doesn['’]?t (?:work|fit|suit)|won['’]?t (?:work|fit))\b",
)
WANTS_THING = Cue(r"^(?:an?|the|one|two|three|four|five|six|some|another)\b")
OWN_WORDS = Cue(
    r"\b(?:i|we|you|you['’]\w+|i['’]\w+|we['’]\w+|sorry|thank|unfortunately|only|can['’]?t|but"
    r"|or|not|no|fee|costs?|charge)\b"
)
ABOUT_TIME = Cue(
    r"\b(?:look for something|day|time|slot|date|appointment|book|come|visit|call|ring|see you"
    "|move|reschedule|another|fit|schedule|"
    r"someone|somebody)\b"
)
# In a dictated sentence only this is said to the agent again.
TO_THE_AGENT = Cue(r"\b(?:me|us|my|our|you|i|i['’]\w+)\b")
DAY_FIRST = Cue(
    "^(?:on |the |next |this |say |well,? |okay,? |right,? |no,? )*(?:(?:mon|tues|wednes"
    "|thurs|fri|satur|sun)day|"
    r"tomorrow|today|tonight)\w*(?:['’]ll|['’]s| will| is| then| itself| please| if|"
    r"[,.!]|$| (?:the|at|works|would|morning|afternoon|evening))",
)
PASSIVE = Cue(
    "(?:done|ready|fixed|sorted|finished|moved|changed|pushed|delivered|sent|collected"
    r"|picked up|booked|cancelled|seen)\b"
)
CALL_ME = Cue(
    r"^(?:please |just |and |but |you can |everybody |everyone )*(?:call|calls|say|put)\b"
)
NEW_TOPIC = Cue(
    "^(?:uh+ |um+ )?(?:second|third|fourth) (?:um+|uh+|the|my|tell|ring|call|book|order"
    r"|send)\b|^(?:and |oh |okay |right |so |then |"
    r"good |now |well |but )*(?:second(?:ly| thing|(?=[,:.]))|third(?:ly|"
    " thing|(?=[,:.]))|fourth(?=[,:.])|(?:first|second|third|next|last) one(?=[, ])|(?:two"
    "|three|four|five|six)(?=[,:] (?:i|we|my|our|"
    r"the|there|get|can|could|book)\b)|next(?: thing|(?=,))|(?:the |an?)?other thing|another thing|"
    r"(?:the )?last thing|"
    r"finally|lastly|one more thing|number (?:two|three|four))\b[,:.]?(?! (?:one|time|of|week"
    "|day|month|year|floor))",
)
AND_ANOTHER = Cue(
    r"^(?:and|also|plus|oh,? and|another thing)\b,? (?:also )?(?:the|my|our|there)\b"
)
BOOKED = Cue(
    r"\b(?:appointment|booking|reservation|delivery|order|meeting|table|slot|session|visit"
    "|lesson|class|flight|"
    r"interview|room|check-?up|viewing|collection)\b",
)
OCCASION = Cue(
    r"\b(?:birthday|anniversary|wedding|party|funeral|christening|leaving do|graduation"
    "|recital|exam|graduation|"
    r"baby shower)\b",
)
SAYS_YES = Cue(r"^(?:yes|yeah|no|that['’]s right|correct|it (?:is|does|will))\b")
ADD_ON = Cue(
    r"^(?:put|add|include|attach|write|stick|pop)(?: in| on)? (?:a|an|some|the) (?:\w+ "
    ")?(?:card|note|ribbon|bow|"
    r"message|candles?|label|sticker|receipt|tag)\b",
)
ON_FILE = Cue(r"\b(?:file|account|record|chart|notes|system)\b")
ON_LIST = Cue(
    r"\b(?:on|to) (?:the|a|your|my) (?:\w+[ -])?(?:list|rota|register|calendar|system)\b"
)
SEES_TO = Cue(
    r"\b(?:look(?:ed)? at|fix(?:ed)?|repair(?:ed)?|come|check(?:ed)?|servic\w+|someone"
    "|somebody|engineer|plumber|"
    r"electrician|technician|mechanic|appointment)\b",
)
BIDS = Cue(r"(?:can|could|would|let['’]s|make|change|move|push)\b")
# The caller stops short: "well, hang on, no".
HALTS = Cue(
    r"(?=.*\b(?:hang on|hold on|wait|actually|hm+|second thoughts?|you know what)\b)(?:(?:well"
    "|oh|um+|uh+|"
    r"actually|hang on|hold on|wait|hm+|no|sorry|on|second|thoughts?|you know what)"
    r"[,.!… ]*)+\bno\b[.!… ]*",
)
ALSO = Cue(r"\b(?:also|as well|too)\b")
ENDED = Cue(r"(?:block|cancel|stop|close|freeze|suspend|pause|delete|remove)\b")
# Asked for what the agent may well know at once: a request only if it goes and finds out.
SOFT = Cue(
    "(?:find out|check (?:if|whether|that|my|the|on|with)|see (?:if|whether)|look into|ask "
    r"(?:if|whether))\b"
)
# An offer to do just what was asked: "shall I sign you up?"
BARE_ACT = Cue(
    "^(?:sign (?:you|me) up|put (?:it|that|you|one)(?: (?:through|down|in|on))*|book (?:it"
    "|that|you|one)(?: in)?|"
    r"(?:add|order|reserve|arrange|send|set up|do|get) (?:it|that|one|this)|"
    r"go ahead|set (?:it|that|this) up)\b[\w ]{0,12}\W*$",
)
SENDS = Cue(r"(?:send|order|post|deliver|email|mail|ship)\b")
SENDS_THAT = Cue(
    "(?:send|email|text|post|mail|put|use|make|ring|call) (?:it|that|them|this|those"
    r"|mine)\b(?! (?:a|an|the|some) )|"
    r"(?:ring|call|text|email) me (?:on|at|by)\b",
)
IN_TOUCH = Cue(
    r"\b(?:email|post|confirmation|notice|number|reach|contact|text|letter|voucher|forms?"
    "|receipt|invoice|bill|"
    r"let you know|ring you|call you)\b",
)
POINTS_IN_OFFER = Cue(
    r"(?:\w+ ){0,3}(?:it|that|them|this)\b|(?:[\w-]+ ){1,6}(?:on|in|with|to|for|about) (?:it"
    r"|that|them|there)\W*$"
)
# To be told when it is done is a wish of its own.
LETS_YOU_KNOW = Cue(
    r"(?:text|email|ring|call|phone|message) you\b.*\b(?:when|once|as soon as|if)\b"
)
POINTS_ACT = Cue(r"(?:do|make|send|get|put|take|move|keep) (?:it|that|them|this)\b")
THIS_ONE = Cue(r"\b(?:this|not next)\b")
# A day is weighed against another: "Monday would be better".
PREFERS = Cue(r"\b(?:better|best|rather|instead|easier|suits?)\b")
GOES_ON = Cue(
    "(?:(?:oh|okay|right|well|lovely|great|perfect|thanks|thank you)[,.!]? )*(?:and|also|then"
    r"|plus|oh,? and)\b"
)
POINTS_BACK = Cue(
    r"\b(?:it|that|this|them|those|these|there|one|same|both|either)\b(?! (?:year|month|week"
    "|time|morning|summer))|^(?:with|for|"
    r"in|on|at|by|to|no|not|only|the one)\b"
)
SAYS_WHAT = Cue(r"\b(?:that|about|saying|to say|how|what|on the|on my|in my)\b|:")
NOT_THAT_WAY = Cue(
    r"\b(?:don['’]?t|do not|never|no|not|can['’]?t) (?:\w+ ){0,2}?(?:calls?|calling|ring"
    "|ringing|phone|text|email|voicemail|answer|pick up|"
    r"post|letters?)\b"
)
