"""Everyday words, which are no topic.

They decide where there are no calls of other callers to compare with.
"""

from aftercall.english.words import vocabulary
from aftercall.memory.words import STOP_WORDS, split_words, to_term

OPENERS = vocabulary(
    """
    a an the my our your his her their its this that these those some any no another every each
    which whose what
    about regarding concerning for of with from in on at into over under behind near by after
    before since
    new old same other whole next last first second current latest big small little main own
    """
)
"""Words before the name of a thing."""

TOPIC_PREPOSITIONS = vocabulary("about regarding concerning re")
"""Words before the thing that a call is about."""

_EMPTY = """
cant wont dont ive im id ill hed shed youve weve theyve youre theyre were thats whats hes shes
isnt doesnt didnt wasnt arent
couldnt wouldnt shouldnt havent hasnt hadnt aint lets gotcha twentieth thirtieth dot com gmail
hotmail www http at underscore
hyphen aah ah aha alright anyway aye bye cheers cool eh em er erm fine goodbye grand great ha
hello hey hi hiya hm hmm huh
lovely mate mhm mm morning nah nope oh ok okay oops ow perfect please pff sorry sure ta thank
thanks uh um welcome well wow yeah
yep yes yo yup dear darling love sir madam ma'am miss mister mr mrs ms dr doctor guys folks man
buddy god gosh goodness heavens
today tomorrow yesterday tonight afternoon evening night noon midnight day week weekend month
year hour minute second moment
time times date dates clock o'clock monday tuesday wednesday thursday friday saturday sunday
january february march april may
june july august september october november december spring summer autumn fall winter christmas
easter holiday ago soon later
early late earlier latest past once twice always never often sometimes usually already yet still
again ever forever meanwhile
then now zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen
eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million
half quarter double triple
first third fourth fifth sixth seventh eighth ninth tenth couple few several dozen bit lot lots
bunch amount rest able about
absolutely accept according across act actual actually add afraid agree ahead aim allow allowed
almost alone along also although
among anybody anyone anything anywhere apart appear apparently appreciate arrive ask asked
asking assume attend aware away awful
back bad badly barely basically bear beat became become begin behind believe belong below beside
best bet better between beyond
big book booked both bother brief bring broken build busy buy came can cannot care carry catch
cause certain certainly chance
check choose clear clearly close closed cold collect come coming complete completely confirm
confused consider contact continue
correct could count cover crazy cut dare decide decided definitely depend describe didn
different difficult do does doing done
doubt down drive drop due during each easily easy eat either else end enjoy enough entire
especially even eventually every
everybody everyone everything everywhere exact exactly except excuse expect expected explain
extra face fair fairly familiar far
fast feel felt fill final finally find finish fit fix fixed follow forget forgot forward found
free frankly fresh full fully
funny further gave general get getting give given glad go goes going gone gonna good got gotta
gotten grab guess had handle hang
happen happened happening happy hard hardly hate have having hear heard held help hence here
high hit hold honest honestly hope
hoping hot how however huge hurry i idea if imagine immediately important in indeed inside
instead interested is it join just
keep kept kind kindly knew know known lack large last lately laugh lay lead learn least leave
left less let lie light like
likely listen little live long look looking lose lost loud low luckily lucky made mainly make
making manage many maybe mean
means meant meet mention met might mind mine missed missing more most mostly much must myself
near nearly necessary need needed
needs neither new nice nobody none nor normal normally not note nothing notice nowhere obviously
odd of off offer only onto open
opened or other otherwise ought out outside over own particular pass paste pay paid people
perhaps person personally phone pick
plain play plenty plus poor popular possible possibly prefer prepare present press pretty prior
probably proper properly proud
prove provide pull push put quick quickly quiet quite rang rather reach read ready real realise
realize really reason receive
received recent recently refer refuse regular relate remain remember remind remove repeat
replace reply request require rid
right ring ringing ripped run sad said same save saw say saying says see seem seems seen sell
send sent serious seriously set
shall share short should shout show shut sick side sign silly similar simple simply since sit
slow small smart so some somebody
somehow someone something somewhere sort sorted sound speak speaking special spell spelled spend
spoke stand start started state
stay stick stop stopped straight strange stuck stuff such suddenly suggest suit suppose supposed
surely swear switch take taken
taking talk tell terrible than thing things think this those though thought through throw thus
till tired to together told too
took top total totally touch toward towards tried true truly trust truth try trying turn turned
type under understand
unfortunately unless unlike until up upon upset urgent use used useful usual very via wait
waiting wake walk wanna want wanted
wants was wash watch way wear weird went what whatever when whenever where wherever whether
which while who whole whom whose why
wide will willing win wish with within without wonder wonderful wondering word words work worked
working works worry worse worst
worth would write writing wrong wrote you young yourself cancel cancelled email text updated
call called caller calling phoned
phoning schedule reschedule broke breaking behave begins sold selling bought pop hop ages
ridiculous gorgeous red green blue
black white brown yellow grey gray pink orange purple warm wet dry dark heavy tall english
afterwards hiccup keen spare wee
bloody blooming damn dead alive bald short-tempered gentle tight loose rough smooth flat round
deep thick thin hungry thirsty
sleepy bored nervous worried scared angry mad annoyed frustrated excited confident comfortable
uncomfortable available
unavailable responsible
"""
_WEAK = """
appointment appointments booking reservation slot visit meeting reminder message messages
voicemail note notes question
questions answer information info detail details help support service services issue problem
trouble situation case matter thing
project topic story deal order delivery list number numbers address account reference code
customer client office desk line
reception receptionist secretary manager boss colleague team staff company business place home
house-mate door room floor part
side end start middle kind sort size colour color price cost money pound pounds dollar dollars
euro euros quid bucks cash card
payment fee total charge wife husband partner mother mum mom mam father dad daddy son daughter
child children kid kids baby
brother sister uncle aunt cousin nephew niece grandmother grandfather gran granny nan grandson
granddaughter family friend
friends neighbour neighbor boy girl lady gentleman woman person people somebody guy fellow
parent parents boyfriend girlfriend
spouse surname name names age birthday hand head eye eyes mouth life world country city town
street road way lane avenue area
corner agent assistant robot machine computer system website page app internet signal voice
speaker thank-you favour favor luck
pleasure hurry rush mistake mix-up sense fault accident news update progress change changes plan
plans option options choice
idea suggestion advice reason example result results difference chance mess bit piece pair
bottom top front back move repair
leak trip replacement copy form paper papers file files record records document documents
picture photo photos letter post mail
envelope
"""


def _terms(text: str) -> frozenset[str]:
    return frozenset(
        to_term(part) for word in vocabulary(text) for part in split_words(word)
    )


EMPTY_TERMS = (
    _terms(_EMPTY)
    | {to_term(word) for word in STOP_WORDS}
    | {to_term(word) for word in OPENERS}
)
"""Words that name no thing."""
WEAK_TERMS = _terms(_WEAK) - EMPTY_TERMS
"""Words that can be part of a topic's name but are no topic alone."""
