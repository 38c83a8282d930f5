"""Ways to ask from many trades, each with its day; and talk that asks for nothing.

All on Tuesday, 3 March 2026.
"""

import pytest

from aftercall.llm.rules.reader import RulesReader
from aftercall.model.reading import Reading
from unit.llm.calls import call_of


def _read(script: str) -> Reading:
    return RulesReader().read(
        call_of(f"A: Hello. | {script} | A: Bye.".replace(" | ", "\n"))
    )


@pytest.mark.parametrize(
    ("script", "words", "due"),
    [
        (
            "C: I was wondering whether you could fit a dog walk in on Thursday.",
            "dog walk",
            "2026-03-05",
        ),
        (
            "C: We'd need the marquee up by Saturday morning. | A: Sure.",
            "marquee",
            "2026-03-07",
        ),
        (
            (
                "C: I have to get my passport photos redone, can I come in tomorrow? | A: Yes, at "
                "ten? | C: Ten's good."
            ),
            "passport",
            "2026-03-04",
        ),
        (
            "C: The reason I'm calling is I'd like to swap my shift on Friday. | A: OK, noted.",
            "shift",
            "2026-03-06",
        ),
        (
            (
                "C: I'm ringing to see if you could resend the invoice. | A: Of course, I'll "
                "resend it."
            ),
            "invoice",
            None,
        ),
        (
            "C: I want to report a streetlight that's out on Elm Road. | A: I'll log it.",
            "streetlight",
            None,
        ),
        (
            "C: My bin wasn't collected this morning. | A: I'm sorry, I'll report it to the crew.",
            "bin",
            None,
        ),
        (
            "C: There's a dead badger on the lane. | A: I'll send the team out.",
            "badger",
            None,
        ),
        (
            "C: Could I get two adult tickets for the matinee on Sunday? | A: Sure.",
            "tickets",
            "2026-03-08",
        ),
        (
            "C: Put me down for the pottery class next Wednesday. | A: Done.",
            "pottery",
            "2026-03-11",
        ),
        (
            "C: We're after a quote for rewiring the barn. | A: I'll have someone visit.",
            "rewiring",
            None,
        ),
        (
            "C: I'm looking to get my chimney swept before the end of the month. | A: Ok.",
            "chimney",
            "2026-03-31",
        ),
        (
            (
                "C: Would you be able to courier the samples over to the Leith office by Monday? "
                "| A: Yes."
            ),
            "samples",
            "2026-03-09",
        ),
        (
            (
                "C: Make me an appointment with the podiatrist please. | A: When? | C: Next "
                "week, any day. | A: Wednesday the "
                "eleventh? | C: Perfect."
            ),
            "podiatrist",
            "2026-03-11",
        ),
        ("C: Cancel Thursday's lesson, would you? | A: Cancelled.", "lesson", None),
        (
            "C: Can we push the call with Ingrid to Friday? | A: Moved to Friday.",
            "ingrid",
            "2026-03-06",
        ),
        (
            "C: Do me a favour and tell Marek the keys are under the mat. | A: I'll tell him.",
            "keys",
            None,
        ),
        (
            (
                "C: If you could let the kitchen know we're running late, that'd be great. | A: "
                "I'll tell them."
            ),
            "kitchen",
            None,
        ),
        ("C: When Priya gets in, have her ring me. | A: I will.", "ring", None),
        (
            "C: I need Sam to call me back before five today. | A: I'll pass it on.",
            "call",
            "2026-03-03",
        ),
        (
            "C: Leave a message for Dr. Olsen: the scan is on Thursday. | A: I'll pass it on.",
            "scan",
            None,
        ),
        (
            "C: Jot down that the alarm code for visitors changes monthly. | A: Noted.",
            "alarm",
            None,
        ),
        ("C: Add oat milk to the shopping list. | A: Added.", "oat milk", None),
        ("C: Set an alarm for six tomorrow. | A: Set.", "alarm", "2026-03-04"),
        (
            "C: Don't let me forget the dentist on the twelfth. | A: I won't.",
            "dentist",
            "2026-03-12",
        ),
        (
            "C: I'd like to renew my library books, they're due Friday. | A: Renewed.",
            "library",
            "2026-03-06",
        ),
        (
            "C: Sign me up for the spring course. | A: I'll sign you up.",
            "spring course",
            None,
        ),
        (
            "C: Upgrade me to the family plan from the first of April. | A: Ok.",
            "family plan",
            "2026-04-01",
        ),
        (
            "C: Please change my address to 14 Quay Street. | A: Changed.",
            "address",
            None,
        ),
        (
            (
                "C: The heating's gone off in flat six. | A: I'll get an engineer out. | C: When? "
                "| A: Tomorrow morning. | C: Okay, tomorrow."
            ),
            "heating",
            "2026-03-04",
        ),
        (
            "C: The lift's stuck on the third floor again. | A: I'll call the lift company.",
            "lift",
            None,
        ),
        (
            "C: I can't get into my online account. | A: I'll open a ticket.",
            "account",
            None,
        ),
        (
            (
                "C: You sent me the wrong colour. | A: I'm sorry, I can send a replacement. | C: "
                "Yes, please do."
            ),
            "colour",
            None,
        ),
        (
            (
                "C: Two large pepperoni and a garlic bread for delivery. | A: Sure, address? | C: "
                "9 Mill Lane."
            ),
            "pepperoni",
            None,
        ),
        (
            "C: I'd like a dozen red roses delivered to my wife on the fourteenth. | A: Lovely.",
            "roses",
            "2026-03-14",
        ),
        (
            "C: Table for six, Saturday, half seven. | A: Name? | C: Voss.",
            "table",
            "2026-03-07",
        ),
        (
            "C: hi i need a cab to the airport tomorrow five am | A: Sure.",
            "cab",
            "2026-03-04",
        ),
        (
            (
                "C: um yeah can somebody come fix the wifi its been down all day | A: I'll send a "
                "tech."
            ),
            "wifi",
            None,
        ),
        (
            (
                "C: so basically i need you to move my physio to the friday | A: friday the "
                "sixth? | C: yeah"
            ),
            "physio",
            "2026-03-06",
        ),
        (
            "C: Get me on the waiting list for the allotment. | A: You're on it.",
            "waiting list",
            None,
        ),
        (
            (
                "C: I want to book my daughter in for swimming. | A: Tuesdays at five starting "
                "the tenth? | C: That'll do."
            ),
            "swimming",
            "2026-03-10",
        ),
        (
            "C: How soon can I get the van serviced? | A: Friday at eight. | C: I'll take it.",
            "van",
            "2026-03-06",
        ),
        (
            (
                "C: Have you got anything for a haircut this afternoon? | A: Three o'clock? | C: "
                "Great, book it. "
            ),
            "haircut",
            "2026-03-03",
        ),
        (
            (
                "C: My appointment is on Thursday but I need to change it to the week after. | A: "
                "Thursday the twelfth? | C: Yes."
            ),
            "appointment",
            "2026-03-12",
        ),
        (
            "C: Hello, I wish to make a complaint about the noise from the pub. | A: I'll file it.",
            "noise",
            None,
        ),
        (
            "C: Send somebody to unblock my drain. It needs doing by Thursday. | A: Okay.",
            "drain",
            "2026-03-05",
        ),
        (
            "C: Remind me the day after tomorrow to put the bins out. | A: Will do.",
            "bins",
            "2026-03-05",
        ),
        (
            "C: What I need is a locksmith, tonight. | A: He can be there at nine. | C: Good.",
            "locksmith",
            "2026-03-03",
        ),
        (
            "C: Tell the landlord the boiler man's coming Friday. | A: I'll tell him.",
            "boiler man",
            None,
        ),
        (
            "C: I'd appreciate a call back from accounts. | A: Tomorrow? | C: Tomorrow's good.",
            "accounts",
            "2026-03-04",
        ),
        (
            "C: It's my dad, he needs his oxygen refilled by Friday. | A: I'll order it.",
            "oxygen",
            "2026-03-06",
        ),
        (
            "C: I forgot my umbrella at your place, can you keep it for me? | A: Yes, we have it.",
            "umbrella",
            None,
        ),
        (
            "C: Let's get the quarterly review in the diary, the twentieth. | A: Ok.",
            "review",
            "2026-03-20",
        ),
        (
            (
                "C: Can you chase the supplier for the hinges? I want them by the tenth. | A: "
                "I'll chase them."
            ),
            "hinges",
            "2026-03-10",
        ),
        (
            (
                "C: I would like to donate a piano. | A: How kind. When can we collect? | C: Any "
                "time after the ninth. Say the tenth."
            ),
            "piano",
            "2026-03-10",
        ),
        (
            (
                "C: Can you put a hold on the blue coat? | A: Yes. | C: Also the hat. On second "
                "thoughts, not the hat. | A: Just the coat."
            ),
            "coat",
            None,
        ),
        (
            "C: I'd like pizza and a salad. Leave out the salad. | A: Just pizza.",
            "pizza",
            None,
        ),
        (
            (
                "C: Order me toner and paper. | A: Toner and paper. | C: Scrap the paper, we have "
                "loads. | A: Okay."
            ),
            "toner",
            None,
        ),
        (
            (
                "C: I need a refund for the boots. | A: I can exchange them. | C: Oh, an "
                "exchange is better, forget the refund. "
                "| A: I'll set up the exchange."
            ),
            "exchange",
            None,
        ),
    ],
)
def test_what_is_asked_is_one_request_with_its_day(
    script: str, words: str, due: str | None
) -> None:
    requests = _read(script).requests
    assert [str(request.due) if request.due else None for request in requests] == [due]
    assert (
        words
        in f"{requests[0].title} {requests[0].details} {requests[0].words}".lower()
    )


@pytest.mark.parametrize(
    "script",
    [
        "C: Book me a squash court for Friday. Actually, no, my knee's bad, forget it. | A: OK.",
        (
            "C: Can you order twenty chairs? | A: Sure. | C: Hang on. We've got chairs. Don't "
            "worry about the chairs. | A: Alright."
        ),
        (
            "C: I'd like a taxi at nine. | A: It's thirty euros. | C: Thirty? No, I'll walk then. "
            "| A: Okay."
        ),
        "C: Please send the catalogue. Oh, it's online? Then no need. | A: Okay.",
        "C: Could you ring the vet? Wait, no, I'll ring them myself. | A: Fine.",
        (
            "C: I want to book a facial. | A: Friday at two? | C: Hmm, let me talk to my sister "
            "first. I'll call back. | A: Sure."
        ),
        "C: Remind me to call Jo. No, never mind, I'll do it now. | A: Okay.",
        (
            "C: Can you move my lesson to Monday? | A: Monday's full. | C: Then leave it as it "
            "is. | A: Okay."
        ),
        "C: Email him the plan. Actually hold off on that. | A: Holding.",
        "C: Do you open on Sundays? | A: Ten to four. | C: Lovely, thanks.",
        "C: How much is a haircut? | A: Twenty. | C: I'll think about it.",
        "C: Could you tell me where you are? | A: On the high street. | C: Ta.",
        "C: Can you hear me now? | A: Yes. | C: Good. What's the weather like?",
        "C: My wife wants a conservatory but I said over my dead body. | A: Ha.",
        "C: If I ever move house I'd get you to do the curtains. | A: Great.",
        "C: Would you like to buy some solar panels? | A: No thank you. | C: OK bye.",
        "C: Has my order shipped? | A: Yes, yesterday. | C: Great, thanks.",
        "C: Is it possible to park there? | A: Yes, free. | C: Good.",
        "C: I'll need to water the garden tonight. | A: It's dry. | C: It is.",
        (
            "C: I should really see a dentist one of these days. | A: Shall I book you in? | C: "
            "No, not now."
        ),
        "C: Did Tom leave a message? | A: No. | C: Okay then.",
        "C: My neighbour asked for a skip but that's his business. | A: I see.",
        "C: Can I pay by card? | A: Yes. | C: Perfect.",
        "C: I've already sent the form, just checking you got it. | A: We did. | C: Great.",
        "C: Can you check if my package has arrived? | A: Yes, it's here. | C: Great.",
        "C: Could you look up my balance? | A: It's forty euros. | C: Thanks.",
        "C: Can you tell me when my appointment is? | A: Friday at two. | C: Perfect.",
        "C: My husband thinks we should get a new boiler. | A: I see.",
        "C: I need to know whether you ship to Malta. | A: We do. | C: Good.",
        "C: I want to ask about your opening hours. | A: Nine to six.",
        "C: I'd need to see it first before deciding. | A: Of course.",
        "C: I'd like to know the price of a key cut. | A: Five pounds.",
        "C: Can you give me the address? | A: Four Hill Street.",
        "C: You should put a sign up, people get lost. | A: Good idea.",
        "C: I'll have to cancel my holiday if this keeps up. | A: Oh dear.",
        "C: I need a holiday, honestly. | A: Ha.",
        "C: I could do with a stiff drink. | A: I bet.",
        "C: If it rains we'll cancel, but let's see. | A: Okay.",
        "C: Maybe at some point you could send me a brochure, not now. | A: Sure.",
        "C: I was thinking of booking a cruise next year. | A: Shall I send details? | C: Not yet.",
        "C: Can you read that back to me? | A: Sure. Two tickets. | C: Right.",
        "C: Can you hold on a second? | A: Sure. | C: Okay I'm back.",
        "C: Could I ask you to speak up? | A: Of course.",
        "C: Can you transfer me to billing? | A: Transferring you now.",
        "C: I need to pay my invoice. | A: I can take that now. | C: Okay here's the card.",
        "C: I ordered a lamp and I want to know where it is. | A: It ships tomorrow. | C: Fine.",
        "C: They want me to submit the form by Friday but I've done it. | A: Good.",
        "C: She asked me to get bread and milk on the way. | A: Okay.",
        "C: My boss told me to book the big room, but he's changed his mind. | A: Okay.",
        "C: Do you want me to bring the contract? | A: Yes please. | C: Okay I will.",
        "C: Should I send you a photo? | A: That would help. | C: I'll send it tonight.",
        "C: You don't need to remind me, it's in my calendar. | A: Okay.",
        "C: Would you recommend the blue or the green? | A: The green. | C: Hm okay.",
        "C: Can you believe they want me to pay twice? | A: Really?",
        "C: How do I reset my router? | A: Hold the button. | C: Got it, works.",
        "C: Can you help me reset it? | A: Press and hold. | C: Ah, works now, thanks.",
        "C: I'd like to thank Priya for her help. | A: That's kind.",
        "C: I want to be clear, I'm not angry. | A: I understand.",
        "C: I'd love to come but I can't. | A: Another time.",
        "C: I need you to understand this is serious. | A: I do.",
        "C: I need someone who speaks Polish. | A: I can speak Polish. | C: Great.",
        "C: Next time I'd want the other room. | A: Noted.",
        "C: Send my love to Betty. | A: Ha, will do.",
        "C: Make sure you get some rest. | A: You too.",
        "C: I want to make sure I have the right number. Is this Oak Clinic? | A: It is.",
        "C: Just calling to say the sofa arrived and it's gorgeous. | A: Lovely!",
        "C: I'm returning your call. | A: Yes, about the quote. It's ready. | C: Great.",
        (
            "C: I got a letter saying I need to renew by May, is that right? | A: Yes. | C: Okay "
            "I'll do it online."
        ),
        "C: Can you confirm my booking? | A: Yes, Friday at six. | C: Great.",
    ],
)
def test_talk_that_wants_nothing_done_is_no_request(script: str) -> None:
    assert not _read(script).requests
