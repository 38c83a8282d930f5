"""The words that values and attributes of a person are made of, as parts of patterns."""

from aftercall.english.words import by_form

KIND = (
    "(?:(?P<kind>work|home|mobile|cell|office|personal|business|school|landline|billing"
    "|delivery|postal|mailing|second|other) )?"
)
NEW = r"(?:(?:new|current|own|full|direct|actual) )*"
ROLE = (
    "wife|husband|partner|spouse|girlfriend|boyfriend|fiancee?|mother|mum|mom|father|dad"
    "|dentist|doctor|gp|vet|"
    r"boss|manager|landlord|landlady|"
    "accountant|lawyer|solicitor|therapist|plumber|electrician|cleaner|gardener|physio"
    "|optician|hairdresser|"
    r"stylist|pharmacy|pharmacist|bank|"
    "insurer|insurance company|provider|supplier|internet provider|emergency contact|next of "
    "kin|assistant|school|gym|church"
)
THING = (
    "car|van|truck|bike|motorbike|boiler|furnace|router|modem|printer|laptop|computer|phone"
    "|tablet|tv|television|"
    r"fridge|freezer|oven|cooker|hob|"
    "dishwasher|washing machine|dryer|tumble dryer|heater|thermostat|server|database|camera"
    "|mower|heating|heat pump|alarm system|browser|"
    "operating system|staging server|production server|phone system|till|scanner|lift|engine"
    "|pump|filter|battery"
)
STREET = (
    "street|road|avenue|lane|drive|court|close|way|place|terrace|boulevard|square|crescent"
    "|gardens|grove|mews|row|"
    r"hill|park|apartment|flat|st|rd|ave"
)
CODE = (
    "pin|pin number|pin code|passcode|password|pass phrase|passphrase|pass word|code"
    "|combination|security word|safe word|memorable word|"
    r"security code|access code|cvv|cvc"
)
WAY = by_form(
    {
        "email": "email emails emailed e-mail",
        "text": "text texts texted sms texting message messages",
        "phone": "call calls called calling ring phone phoned phoning telephone",
        "whatsapp": "whatsapp",
        "post": "letter letters post mail",
    }
)
WAYS = "|".join(sorted(WAY, key=len, reverse=True))
HOURS = (
    "(?:mornings?|afternoons?|evenings?|weekends?|weekdays?|nights?|lunchtimes?|(?:mon|tues"
    "|wednes|thurs|fri|satur|"
    r"sun)days?|(?:after|before|between|around) [\w: ]+)"
)
WISHES = (
    *(
        "prefer",
        "would rather",
        "would like",
        "like",
        "want",
        "love",
        "choose",
        "go for",
        "need",
        "take",
        "have",
        "get",
        "book",
        "order",
    ),
    *(
        "drink",
        "use",
        "ask for",
        "request",
        "give i",
        "put i in",
        "put i on",
        "i pay",
        "sit",
        "for i",
        "favourite",
        "favorite",
        "only",
    ),
)
DOMAINS: tuple[tuple[str, str], ...] = (
    ("seat", r"window|aisle"),
    (
        "floor",
        (
            "ground floor|top floor|high floor|low floor|upper floor|higher floor|lower floor"
            "|first floor"
        ),
    ),
    (
        "milk",
        r"oat milk|soy milk|almond milk|whole milk|skimmed milk|skim milk|coconut milk|dairy milk",
    ),
    (
        "coffee",
        r"decaf|espresso|flat white|cappuccino|latte|americano|black coffee|filter coffee|cortado",
    ),
    ("steak", r"medium rare|medium well|well done|rare"),
    ("doctor", r"(?:female|woman|lady|male|man) doctor"),
    (
        "payment",
        (
            "pay(?:ing)? (?:by|in|with) (?:card|cash|invoice|cheque|check|transfer|direct debit"
            "|paypal)|invoices?|direct debit|cash"
        ),
    ),
    (
        "language",
        (
            "(?:in|speak|speaking) (?:english|spanish|french|german|italian|portuguese|polish"
            "|dutch|arabic|hindi|mandarin)"
        ),
    ),
    ("receiving", r"pick ?up|collect(?:ion)?|deliver(?:y|ed)"),
    ("bed", r"(?:king|queen|twin|double|single) (?:bed|room)|twin beds"),
    ("size", r"size (?:small|medium|large|xl|\d+)|extra large"),
    ("smoking", r"non-?smoking|smoking"),
    ("pillow", r"(?:firm|soft|feather|foam) pillows?"),
    ("water", r"sparkling|still water|tap water"),
)
DIETS = (
    r"vegetarian|vegan|pescatarian|keto|carnivore|omnivore|halal|kosher|gluten-?free"
)
MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
MARITAL = r"married|remarried|divorced|single|engaged|widowed|separated"
JOBS = (
    "nurse|teacher|doctor|driver|student|pensioner|lawyer|chef|pilot|carer|plumber|engineer"
    "|freelancer|contractor|"
    r"electrician|accountant|dentist|"
    "designer|developer|programmer|manager|cleaner|cook|waiter|waitress|farmer|builder"
    "|carpenter|photographer|writer|journalist|architect|"
    "consultant|vet|paramedic|police officer|firefighter|receptionist|secretary|librarian"
    "|musician|painter|mechanic|baker|butcher|barber|"
    r"hairdresser|therapist|translator|scientist|professor|lecturer|shop assistant|salesman|"
    "midwife|surgeon|barista|bartender|coach|tutor|trainer|courier|postman|soldier|politician"
    "|actor|actress|singer|dancer|artist|editor|"
    "analyst|banker|broker|clerk|cashier|decorator|joiner|roofer|bricklayer|welder|fitter"
    "|gardener|nanny|childminder|optician|"
    "pharmacist|physio|physiotherapist|psychologist|psychiatrist|counsellor|social worker"
    "|solicitor|barrister|judge|agent|tailor|florist|"
    "fisherman|sailor|flight attendant|steward|stewardess|apprentice|intern|trainee"
    "|supervisor|director|headteacher"
)

HOW_GOOD = (
    "(?:good|great|bad|terrible|keen|decent|lousy|lovely|nice|happy|slow|hopeless|poor"
    r"|careful|nervous)\b"
)
