"""Words that describe and do not name, for what is written without capitals: "my bank is useless", not "my bank is barclays"."""

from collections.abc import Sequence

from aftercall.llm.rules.vocabulary import vocabulary

_ENDINGS = ("ing", "ed", "ful", "less", "ous", "able", "ible", "ish", "ant", "ent", "ior", "tic", "ical", "ional")
_YET_NAMES = vocabulary(
    """
    ahmed alfred ashish belarus brent browning bryant clement constable corbyn danish diamant durant ed fleming fred gable girish
    golding grant hamed harding ing irish isable jared jed keating kent khaled king laurent mable manning mildred mohamed mohammad
    mohammed muhammed ned parish rashed reed saeed satish ted trent vincent waleed wilfred winifred
    """
)
_PLAIN = vocabulary(
    """
    a able about abroad absent accounting accounts active addict admin adult afraid after again against ages ago alive all alone amateur
    american an and angry annoying another antibiotics anxious any anyone anything anytime apartment around as asap asleep asthmatic at
    available average awake away awful awkward back bad bald bankrupt barracks based beautiful because bed before behind benefits bereft
    best better between big bilingual bit bits black blind blue boring both brand brave brilliant british broke broken brown bungalow
    busy but by call calm caravan care careful celibate central certain chaos charge charming chatty cheap cheerful chilly city clean
    clever close clumsy coast cold common complete confident cool correct costly cottage country countryside cousin crap crazy critical
    cross cruel curious cute days dead deadly deaf debt decent deep dementia depressed desperate diabetic diesel different difficult
    direct dirty disabled disaster distant divine divorced dizzy dodgy double doubt doubtful down downstairs dreadful drunk dry due dull
    dumb duty early easy edge eight elderly electric elsewhere empty engaged engineering english enough epileptic ethical even ever
    every evil excellent expert extra fab fabulous fair fake family fast fat fear fed few fierce finance fine fire firm first fit five
    flat flexible fluent for foreign four frail free french fresh friday friendly from frozen full-time fun funny furious further fussy
    gay general generous genius gentle genuine german glad gone good gorgeous grand grateful great greek green grey grim grumpy half
    hall halls happy hard harsh hated healthy heavy here high hills him historic holiday home homeless honest hopeful hopeless horrible
    hospice hospital hostel hot hotel house huge human humble hungry hurt hybrid ideal idle ill in inside insulin intense into invalid
    irish it italian jail jealous joke junior just keen kind large last late later lazy leave leaving left legal legend less like limbo
    line little live lively local logistics lonely long loose lost loud lousy love lovely low loyal luck lucky mad male management
    marketing married massive maybe mean medical medication mental mess messy mid middle mild miles mine miserable missing mixed mobile
    modern monday moody more most mountains moving much muslim my narrow nasty near nearby nearly neat nervous never new next nice
    nightmare nights nine no nobody normal not nothing now nowhere nuts obese odd of off offline often okay old on once one online only
    open opposite or other our out outside over overseas own pain painful paranoid part part-time patient perfect person pet pieces
    pleasant polish polite poor poorly popular portuguese posh positive poverty practical pregnant pretty prison private production
    professional proper proud public pure purple quick quiet quite rare rather raw reach ready real really reasonable reception red
    refuge regular reliable religious remote research retired rich ridiculous right rotten rough round rubbish rude rural sad safe sales
    same saturday scared scary seaside second secret secure security self senior separate serious seven several severe shaky sharp
    shelter sheltered shifts shock short shut shy sick sight silly simple since single six skint sleepy slim slow sly small smart snow
    so sober soft solid some somebody someone something somewhere soon sore sorry sound spanish spare special spot steady stern still
    straight strange street stressed strict strike strong stubborn stuck stupid style suburb suburbs such sunday sunny super superb
    support supportive sure surgery swedish sweet tablets tall tears ten terminal terrible that the their them then theory there they
    thick thin this thorough three thursday tidy tight time tiny tired to today together tomorrow tonight too top total touch tough town
    track trouble true trustworthy tuesday turkish twice two ugly under unfair unfit unhappy unkind unsure unwell up upset upstairs
    urgent used useful useless usual vague vain valley vegan vegetarian very vile village visiting warm weak wednesday weekends weird
    well welsh what when whenever where which white wide widowed wild wise with without wonderful wood woods work worn worse worst worth
    wrecked wrong yellow yes yesterday young your
    """
)
MAKES = vocabulary(
    """
    acer asus audi baxi beko bmw bosch canon chevrolet chrome cisco citroen civic corolla corsa dacia debian dell draytek ducati edge
    epson fiat fiesta firefox focus ford fritzbox golf hive honda hotpoint hp huawei hyundai ideal iphone jaguar jeep kawasaki kia
    kyocera lenovo lexmark lexus lg linksys linux macbook mariadb mazda mercedes miele mini mongodb motorola mysql nest netgear nissan
    nokia oneplus opel oracle panasonic peugeot philips pixel polo porsche postgres potterton prius qashqai redis renault safari samsung
    seat siemens skoda sony subaru suzuki tado tesla thinkpad toyota tplink triumph ubuntu vaillant vauxhall viessmann volkswagen volvo
    vw windows worcester xerox yamaha yaris zanussi
    """
)
"""Of things, only these are surely named where nothing is written large."""


def is_ordinary(words: Sequence[str]) -> bool:
    """Whether one of them describes."""
    return any(word in _PLAIN or (word.endswith(_ENDINGS) and word not in _YET_NAMES and len(word) > 4) for word in words)
