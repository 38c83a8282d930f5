"""Everyday words, which are no topic.

They decide where there are no calls of other callers to compare with.
"""

from functools import cache

from aftercall.english.words import vocabulary
from aftercall.memory.words import STOP_WORDS, split_words, to_term

OPENERS = vocabulary(
    """
    a an the my our your his her their its this that these those some any no another every each
    which whose what about regarding concerning for of with from in on at into over under behind
    near by after before since new old same other whole next last first second current latest big
    small little main own
    """
)
"""Words before the name of a thing."""

TOPIC_PREPOSITIONS = vocabulary("about regarding concerning re")
"""Words before the thing that a call is about."""

_EMPTY = """
cant wont dont ive im id ill hed shed youve weve theyve theyre isnt doesnt didnt wasnt arent
couldnt wouldnt shouldnt havent hasnt hadnt aint lets gotcha twentieth thirtieth dot com gmail
hotmail www http underscore hyphen aah ah aha alright anyway aye bye cheers cool eh em er erm fine
goodbye grand great hello hey hiya hm hmm huh lovely mate mhm mm morning nah nope oh ok okay oops
ow perfect please pff sorry sure ta thank uh um welcome well wow yeah yep yes yo yup dear darling
sir madam ma'am miss mister mr ms dr doctor guys folks man buddy god gosh goodness heavens today
tomorrow yesterday tonight afternoon evening night noon midnight day week weekend month year hour
minute moment time date clock o'clock monday tuesday wednesday thursday friday saturday sunday
january february march april may june july august september october november december spring summer
autumn fall winter christmas easter holiday ago soon later early late earlier past twice always
never often sometimes usually already yet still ever forever meanwhile zero two three four five six
seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million half quarter double
triple third fourth fifth sixth seventh eighth ninth tenth couple few several dozen bit lot bunch
amount rest able absolutely accept according across act actual add afraid agree ahead aim allow
almost alone along although among anybody anyone anything anywhere apart appear apparently
appreciate arrive ask assume attend aware away awful back bad badly barely basically bear beat
became begin believe belong below beside bet between beyond book bother brief bring broken build
busy buy came cannot care carry catch cause certain certainly chance check choose clear clearly
close cold collect complete confirm confused consider contact continue correct count cover crazy
cut dare decide definitely depend describe different difficult doubt drive drop due easily easy eat
either else end enjoy enough entire especially eventually everybody everyone everything everywhere
exact exactly except excuse expect explain extra face fair fairly familiar far fast feel fill final
find finish fit fix follow forget forward free frankly fresh full fully funny gave general get glad
go goes gonna gotta grab guess handle hang happen happy hard hardly hate hear held help hence high
hit honest honestly hope hot however huge hurry idea imagine immediately important indeed inside
instead interested join keep kind kindly knew lack large laugh lay lead learn least leave less lie
light like listen live long look lose loud low luckily lucky made mainly manage many maybe mean
meet mention mind mine mostly much nearly necessary need neither nice nobody none normal note
nothing notice nowhere obviously odd offer onto open otherwise ought outside particular pass pay
people perhaps phone pick plain play plenty plus poor popular possible prefer prepare present press
pretty prior probably proper properly proud prove provide pull push put quick quickly quiet quite
rang rather reach read ready real realise realize really reason receive recent refer refuse regular
relate remain remember remind remove repeat replace reply request require rid right ring ripped run
sad said save saw seem sell send serious seriously set share short shout show shut sick side sign
silly similar simple simply sit slow smart somebody somehow someone something somewhere sort sound
speak special spell spend stand start state stay stick stop straight strange stuff suddenly suggest
suit suppose swear switch take talk tell terrible thing think though throw thus till tired together
top total touch toward tried true truly trust truth try turn type understand unfortunately unless
unlike upon upset urgent via wait wake walk wanna want wash watch way wear weird whatever whenever
wherever whether wide win wish within without wonder word work worry worth write wrong young cancel
email text updated call caller schedule reschedule behave pop hop ages ridiculous gorgeous red
green blue black white brown yellow grey gray pink orange purple warm wet dry dark heavy tall
english afterwards hiccup keen spare wee bloody blooming damn dead alive bald short-tempered gentle
tight loose rough smooth flat round deep thick thin hungry thirsty sleepy bored nervous scared
angry mad annoyed frustrated excited confident comfortable uncomfortable available unavailable
responsible
"""
_WEAK = """
appointment reservation slot visit message voicemail question answer information info detail
support service issue problem trouble situation case matter project topic story deal order delivery
list number address account code customer client office desk line reception receptionist secretary
boss colleague team staff company place home house-mate door room floor part middle size colour
color price cost money pound dollar euro quid bucks cash card payment fee charge wife husband
partner mother mum mom mam father dad daddy son daughter child kid baby brother sister uncle aunt
cousin nephew niece grandmother grandfather gran granny nan grandson granddaughter family friend
neighbour neighbor boy girl lady gentleman woman fellow parent boyfriend girlfriend spouse surname
name birthday hand head eye mouth life world country city town street road lane avenue area corner
agent assistant robot machine computer system website page app internet signal voice speaker favour
favor luck pleasure rush mistake mix-up sense fault accident progress change plan option choice
advice example result mess piece pair bottom front move repair leak trip copy form paper file
record document picture photo letter post mail envelope
"""


def _terms(text: str) -> frozenset[str]:
    return frozenset(
        to_term(part) for word in vocabulary(text) for part in split_words(word)
    )


@cache
def list_empty_terms() -> frozenset[str]:
    """Words that name no thing."""
    small = {to_term(word) for word in STOP_WORDS | OPENERS}
    return _terms(_EMPTY) | small


@cache
def list_weak_terms() -> frozenset[str]:
    """Words that can be part of a topic's name but are no topic alone."""
    return _terms(_WEAK) - list_empty_terms()
