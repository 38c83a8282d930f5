"""Callers who come back to something, and callers who do not: what each says, call by call."""

RECURRING: dict[str, tuple[str, ...]] = {
    "orlando": (
        "Hi, I'm calling about the Orlando sale. The buyer wants to see the inspection report.",
        "Any news on the Orlando sale? The bank is slow.",
        "The Orlando sale again. They want another discount and I don't like it.",
    ),
    "tesla": (
        "Hi there. I need to book the Tesla in for its service.",
        "Hello, when is my Tesla ready? The Tesla has been there for days.",
        "It's about my Tesla. It makes that noise again.",
    ),
    "boiler": (
        "yeah hi the boiler is making that noise again can you send somebody",
        "hello its about my boiler the man never came",
        "hi me again the boiler is cold and i rang about the boiler last week",
    ),
    "dubai": (
        "Good morning. We are planning our move to Dubai and I need a quote from the movers.",
        "Could you remind me to collect the papers for the Dubai move?",
        "I talked to my wife about Dubai. We leave in June.",
    ),
    "extension": (
        "Hello. The architect has questions about the kitchen extension.",
        "I'd like to know whether the council approved our kitchen extension.",
        "The kitchen extension, yes. Who pays for the scaffolding of the extension?",
    ),
    "visa": (
        "I'm ringing about my visa. The consulate wants another photo.",
        "Is there any answer about the visa yet?",
        "My visa is still at the consulate. Could you call the consulate about the visa?",
    ),
}

PASSING: dict[str, tuple[str, ...]] = {
    "small talk": (
        "Hello, good morning, how are you? It's a lovely Monday, isn't it. Thanks, bye!",
        "Good morning! How are you this Monday? My wife says hello. Thank you, goodbye.",
        "Good morning, it's me again on a Monday. My wife sends her regards. Thanks, bye bye.",
    ),
    "appointments": (
        "I'd like to make an appointment for Tuesday at ten, please.",
        "I need to move my appointment to Thursday, about the appointment on Tuesday.",
        "It's about my appointment, can I have a later appointment?",
    ),
    "one call, one word": (
        "The trampoline. " * 20,
        "What are your opening hours?",
        "Can you give me the price of that again?",
    ),
    "one thing each": (
        "I'm calling about the piano. The piano is out of tune.",
        "It's about the fence. The fence fell over.",
        "It's about my parcel. The parcel never came.",
    ),
    "their own name": (
        "Hi, this is Ottoline. My name is Ottoline Crabtree.",
        "Hello, Ottoline here, the Crabtree account, for Ottoline Crabtree.",
        "It's for Ottoline, with the Crabtree booking, for Ottoline.",
    ),
}

SETTLED = (
    "The boiler is fixed now, thank you.",
    "Good news, the boiler works again.",
    "The man came about the boiler. It's all sorted.",
    "We've finally sorted the boiler.",
    "You can forget about the boiler, we moved out.",
    "the boiler has been repaired so thats done",
)

NOT_SETTLED = (
    "Is the boiler fixed now?",
    "The boiler isn't fixed.",
    "Please get the boiler sorted.",
    "When the boiler is done, ring me.",
    "The boiler still has to be repaired.",
    "They said the boiler is fixed, and it leaks.",
    "I hope the boiler is sorted soon.",
)
