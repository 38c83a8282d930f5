"""Whole profiles: names in parts, forms of address, pronouns, zones; and the names of others."""

import pytest

from aftercall.llm.rules.reader import RulesReader
from unit.llm.calls import call_of


@pytest.mark.parametrize(
    ("script", "profile"),
    [
        ("C: Hello, you're speaking to Amara Okoye.", {"name": "Amara Okoye"}),
        (
            "C: Hi, yes, Dieter Vogel, I rang earlier about the boiler.",
            {"name": "Dieter Vogel"},
        ),
        ("C: Good afternoon, Mrs Kowalczyk from number 12.", {"name": "Kowalczyk"}),
        (
            "C: It's Bea. Beatrice Lindqvist, sorry, everyone calls me Bea.",
            {"name": "Beatrice Lindqvist", "call_name": "Bea"},
        ),
        ("C: Hey it's Ollie from the print shop.", {"name": "Ollie"}),
        ("C: hi there, ana here.", {"name": "Ana"}),
        ("C: Hi, Ravi here, Ravi Subramaniam.", {"name": "Ravi Subramaniam"}),
        ("C: Yes, hello, the name is Thandiwe Mokoena.", {"name": "Thandiwe Mokoena"}),
        ("C: My name is Jürgen, last name Hartmann.", {"name": "Jürgen Hartmann"}),
        ("C: First name Yusuf, surname Demir.", {"name": "Yusuf Demir"}),
        (
            "C: First name's Clara, C L A R A, last name's Nguyen.",
            {"name": "Clara Nguyen"},
        ),
        (
            "C: I'm Doctor Elaine Fisher at the county clinic.",
            {"name": "Elaine Fisher"},
        ),
        ("C: This is Tomás. Tomás Rivera.", {"name": "Tomás Rivera"}),
        (
            "C: Good morning. I am Fatima El Amrani and I need to change a delivery.",
            {"name": "Fatima El Amrani"},
        ),
        ("C: Uh, hi. My name's uh, Keith. Keith Barlow.", {"name": "Keith Barlow"}),
        ("C: Hi, I'm one of your members, Sunita Rao.", {"name": "Sunita Rao"}),
        (
            "C: Hello, I'm a customer of yours, name of Bill Travers.",
            {"name": "Bill Travers"},
        ),
        ("C: Hi! Nkechi speaking, from Lagos Foods.", {"name": "Nkechi"}),
        (
            "C: I need a plumber. | A: Sure, who's this? | C: Henrik Dahl.",
            {"name": "Henrik Dahl"},
        ),
        (
            "C: I need a plumber. | A: Can I get a name for the booking? | C: Yes, Salma Haddad.",
            {"name": "Salma Haddad"},
        ),
        (
            "C: I need a plumber. | A: And what's the name? | C: Park. Min-jun Park.",
            {"name": "Min-jun Park"},
        ),
        (
            "C: I need a plumber. | A: Could you tell me who's calling? | C: It's Joyce Abara.",
            {"name": "Joyce Abara"},
        ),
        (
            "C: I need a plumber. | A: Under what name? | C: Castellanos.",
            {"name": "Castellanos"},
        ),
        (
            "C: I need a plumber. | A: Your name, please. | C: Lindiwe.",
            {"name": "Lindiwe"},
        ),
        (
            (
                "C: I need a plumber. | A: And who do I have the pleasure of speaking with? | C: "
                "Uh, Casper Juhl."
            ),
            {"name": "Casper Juhl"},
        ),
        (
            (
                "C: I need a plumber. | A: May I ask who's calling? | C: Sure, my name is "
                "Rosalind, Rosalind Keane."
            ),
            {"name": "Rosalind Keane"},
        ),
        (
            "C: I need a plumber. | A: Can I take your full name? | C: Marguerite Anne Dubois.",
            {"name": "Marguerite Anne Dubois"},
        ),
        (
            (
                "C: I need a plumber. | A: And the name on the account? | C: It's in my name, "
                "Gideon Frost."
            ),
            {"name": "Gideon Frost"},
        ),
        (
            (
                "C: I need a plumber. | A: What's your last name? | C: Achterberg, A C H T E R B "
                "E R G."
            ),
            {"name": "Achterberg"},
        ),
        (
            (
                "C: I need a plumber. | A: What should I call you? | C: Just Vee is fine. Full "
                "name's Veronica Tan."
            ),
            {"name": "Veronica Tan", "call_name": "Vee"},
        ),
        (
            (
                "C: I need a plumber. | A: Am I speaking with Ms. Ortega? | C: Yes, this is Lucia "
                "Ortega."
            ),
            {"name": "Lucia Ortega"},
        ),
        ("C: It's me again, Wilma.", {"name": "Wilma"}),
        ("C: Wilma again, we got cut off.", {"name": "Wilma"}),
        ("C: Hi, this is Aoife, A O I F E, Brennan.", {"name": "Aoife Brennan"}),
        (
            "C: Right, so, my name, Hamish Munro, and I live up at the farm.",
            {"name": "Hamish Munro"},
        ),
        ("C: Put it under Zawadi, please. That's me.", {"name": "Zawadi"}),
        (
            "C: hello my name is dmitri volkov i am calling for apartment",
            {"name": "Dmitri Volkov"},
        ),
        ("C: hi yeah um this is kayla so my car won't start", {"name": "Kayla"}),
        ("C: yo it's marcus", {"name": "Marcus"}),
        ("C: hello it is sofia garcia i have appointment", {"name": "Sofia Garcia"}),
        ("C: hi uh stella novak here", {"name": "Stella Novak"}),
        (
            "C: i need a plumber | A: What's your name? | C: its kevin obrien",
            {"name": "Kevin Obrien"},
        ),
        (
            "C: i need a plumber | A: Your name? | C: oh sorry yeah linda chu c h u",
            {"name": "Linda Chu"},
        ),
        (
            "C: i need a plumber | A: Who's calling please? | C: this is theo",
            {"name": "Theo"},
        ),
        (
            "C: i need a plumber | A: And your name? | C: my name abdul rahman",
            {"name": "Abdul Rahman"},
        ),
        ("C: i need a plumber | A: Name? | C: greta", {"name": "Greta"}),
        (
            (
                "C: i need a plumber | A: Can I have your first and last name? | C: yes it's john "
                "paul smith"
            ),
            {"name": "John Paul Smith"},
        ),
        (
            "C: This is Fern, she/her, calling from the co-op.",
            {"name": "Fern", "pronouns": "she/her"},
        ),
        (
            "C: I'm Robin Vale, my pronouns are they them.",
            {"name": "Robin Vale", "pronouns": "they/them"},
        ),
        (
            "C: It's Alex Wu. | A: Thank you, sir. | C: It's they, actually. They and them.",
            {"name": "Alex Wu", "pronouns": "they/them"},
        ),
        (
            "C: Jo Hart here. | A: Thanks, Mrs. Hart. | C: Not Mrs, please. He him.",
            {"name": "Jo Hart", "pronouns": "he/him"},
        ),
        (
            "C: My name's Benjamin Adeleke, but Ben's fine.",
            {"name": "Benjamin Adeleke", "call_name": "Ben"},
        ),
        (
            "C: I'm Katarzyna Zielinska. You can call me Kasia.",
            {"name": "Katarzyna Zielinska", "call_name": "Kasia"},
        ),
        (
            "C: It's William Ashby. Please call me Bill.",
            {"name": "William Ashby", "call_name": "Bill"},
        ),
        (
            "C: It's Alexandra Petrov, Sasha to my friends, call me Sasha.",
            {"name": "Alexandra Petrov", "call_name": "Sasha"},
        ),
        (
            "C: I'm Gus Oyelaran, I'm in Chicago, so Central time.",
            {"name": "Gus Oyelaran", "timezone": "America/Chicago"},
        ),
        (
            "C: Nora Beck. I'm on Eastern time, by the way.",
            {"name": "Nora Beck", "timezone": "America/New_York"},
        ),
        (
            "C: It's Pia Holm, call me at nine London time.",
            {"name": "Pia Holm", "timezone": "Europe/London"},
        ),
        ("C: Could you tell Samuel Reyes I'm late?", {}),
        ("C: I'm calling for my mother, Edna Crowe.", {}),
        ("C: Is this Harbour Dental?", {}),
        ("C: My son's name is Otis.", {}),
        ("C: I spoke with Janet Cole yesterday.", {}),
        ("C: Is Doctor Patel in today?", {}),
        ("C: It's Christmas soon, are you open?", {}),
        ("C: It's Dr. Patel's patient.", {}),
        ("C: I'm Polish and my English is bad.", {}),
        ("C: The card should say, Love from Auntie Jean.", {}),
        ("C: I need a plumber. | A: What's the child's name? | C: Ruby Marsh.", {}),
        ("C: I need flowers. | A: Who are they for? | C: Agnes Bell.", {}),
        ("C: I need flowers. | A: Which florist? | C: Green Thumb.", {}),
        ("C: I'm Fine. Thanks.", {}),
        ("C: i'm good thanks and you", {}),
        ("C: it's cold here", {}),
        ("C: it's about my bill", {}),
        ("C: this is my third call", {}),
        ("C: i'm here with my dog", {}),
        ("C: Hi. Quick one. Do you sell Dutch Gold paint?", {}),
        ("C: Hi, it's Tuesday the delivery was for.", {}),
        ("C: This is Unit Four Storage, right?", {}),
        ("C: I'm with British Gas at the moment.", {}),
    ],
)
def test_a_profile_is_what_the_caller_said_of_themself(
    script: str, profile: dict[str, str]
) -> None:
    script = f"A: Hello, how can I help? | {script} | A: Okay.".replace(" | ", "\n")
    assert (
        RulesReader().read(call_of(script)).profile.model_dump(exclude_none=True)
        == profile
    )
