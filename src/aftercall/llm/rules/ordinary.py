"""Words that describe and do not name, for what is written without capitals: "my bank is
useless", not "my bank is barclays".
"""

from collections.abc import Sequence

from aftercall.llm.rules.vocabulary import vocabulary

_ENDINGS = (
    "ing",
    "ed",
    "ful",
    "less",
    "ous",
    "able",
    "ible",
    "ish",
    "ant",
    "ent",
    "ior",
    "tic",
    "sive",
    "tive",
    "ical",
    "ional",
)
_YET_NAMES = vocabulary(
    """
    ahmed alfred ashish belarus brent browning bryant clement constable corbyn danish diamant durant ed fleming fred gable girish
    golding grant hamed harding ing irish isable jared jed keating kent khaled king laurent mable manning mildred mohamed mohammad
    mohammed muhammed ned parish rashed reed saeed satish ted trent vincent waleed wilfred winifred
    """
)
_PLAIN = vocabulary(
    """
    a able about abroad absent accounting accounts ace active addict admin adult afraid african after again against ages ago albanian
    alcoholic alive all allergic alone alright amateur american an anaemic and angry annoying another antibiotics anxious any anyone
    anything anytime apartment around as asap asian asleep asthmatic at australian austrian available average awake away awesome awful
    awkward back bad bald bankrupt barracks based beautiful because bed before behind belgian benefits bereft best better between big
    bilingual bipolar bit bits black blind blue blunt boring bossy both brand brave brazilian brilliant british broke broken brown
    buddhist bulgarian bungalow busy but by call calm canadian caravan care careful catholic celiac celibate central certain chaos
    charge charming chatty cheap cheerful chilly chinese christian city classy clean clever clingy close clumsy coast coeliac cold
    common complete confident cool correct costly cottage country countryside cousin crap crazy critical croatian cross cruel curious
    cute czech days dead deadly deaf dear debt deceased decent deep dementia depressed desperate diabetic diesel different difficult
    direct dirty disabled disaster dishonest distant divine divorced dizzy dodgy double doubt doubtful down downstairs dreadful drunk
    dry due dull dumb dusty dutch duty early easy edge egyptian eight elderly electric elsewhere empty engaged engineering english
    enough epileptic estonian ethical european even ever every evil excellent expert extra fab fabulous fair fake family fast fat faulty
    fear fed female few fierce filthy finance fine fire firm first first-class fit five flat flexible fluent for foreign four frail free
    french fresh friday friendly from front frozen full-time fully fun funny furious further fussy gay general generous genius gentle
    genuine german ghanaian glad gone good gorgeous grand grateful great greedy greek green grey grim grumpy half hall halls handsome
    handy happy hard harsh hated healthy heavy here high hills him hindu historic holiday home homeless honest hopeful hopeless horrible
    hospice hospital hostel hot hotel house huge human humble hungarian hungry hurt hybrid ideal idle ill in indian inside insulin
    intense into invalid iranian iraqi irish it italian jail japanese jealous jewish joke junior just keen kenyan kind korean laid-back
    large last late later latvian lazy leaky leave leaving lebanese left legal legend less like limbo line lithuanian little live lively
    local logistics lonely long loose lost loud lousy love lovely low loyal luck lucky mad male man management marketing married massive
    maybe mean medical medication mediocre mental mess messy mexican mid middle mild miles mine miserable missing mixed mobile modern
    monday moody more most mountains moving much muslim my narrow nasty near nearby nearly neat needy nervous never new next nice
    nigerian nightmare nights nine no nobody noisy normal norwegian nosy not nothing now nowhere nurse nuts obese odd of off offline
    often ok okay old on once one online only open opposite or other our out outside over overseas own pain painful pakistani paranoid
    part part-time patient pensioner perfect person pet picky pieces pleasant polish polite poor poorly popular portuguese posh positive
    poverty practical pregnant pretty pricey prison private production professional proper proud public pure purple quick quiet quite
    rare rather raw reach ready real really reasonable reception red refuge regular reliable religious remote research retired rich
    ridiculous right romanian rotten rough round rubbish rude rural russian rusty sad safe sales same saturday scared scary scottish
    seaside second secret secure security self senior separate serbian serious seven several severe shaky sharp shelter sheltered shifts
    shit shite shock short shut shy sick sight sikh silly simple since single six skint sleepy slim slow sly small smart smelly snow so
    sober soft solid some somebody someone something somewhere soon sore sorry sound spanish spare special spot steady stern still
    stingy straight strange street stressed strict strike strong stubborn stuck student stupid style suburb suburbs such sunday sunny
    super superb support supportive sure surgery swedish sweet syrian tablets tall tasty teacher tears ten terminal terrible that the
    their them then theory there they thick thin thirsty this thorough three thursday tidy tight time tiny tired to today together
    tomorrow tonight too top top-notch total touch tough town track trendy trouble true trustworthy truthful tuesday turkish twice two
    ugly ukrainian under unfair unfit unhappy unkind unsure unwell up upset upstairs urgent used useful useless usual vague vain valley
    vegan vegetarian very vile village visiting warm wary weak wealthy weary wednesday weekend weekends weird well welsh what when
    whenever where which white wide widowed wild wise with without witty woman wonderful wood woods work worn worse worst worth worthy
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


def has_descriptive_word(words: Sequence[str]) -> bool:
    """Whether one of them describes."""
    return any(
        word in _PLAIN
        or (word.endswith(_ENDINGS) and word not in _YET_NAMES and len(word) > 4)
        for word in words
    )
