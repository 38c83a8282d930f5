import re

SCENARIO = "no_leak_across_callers"
CAUSE = "agent"
WHAT = "tells the second caller what the first one wanted"

NOTES = []


NO_NAME = set("""I Hi Hello Yes No Oh Ok Okay Please Thank Thanks Good Sorry My The Dr Doctor Lin Blue Harbor Corner
Main Street Pharmacy Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June
July August September October November December Well Then Actually Sure""".split())


def name_in(text):
    for first, last in re.findall(r"\b(?=([A-Z][a-z]+) ([A-Z][a-z]+)\b)", text):
        if first not in NO_NAME and last not in NO_NAME:
            return first + " " + last
    return ""


def parting(text):
    return bool(re.search(r"\b(?:good-?)?bye\b|that(?:'s| is| was|'ll be) all\b|nothing else|that's everything", text.lower()))

def make():
    s = {"met": False, "name": "", "thing": "", "done": False}

    def agent(text):
        if not text.strip():
            if s["met"]:
                return "Are you still there?"
            s["met"] = True
            return "Hello, this is your reminder service. How can I help you?"
        low = text.lower()
        s["name"] = name_in(text) or s["name"]
        m = re.search(r"remind me to (.+?)[.!?]*$", text, re.I)
        if m:
            s["thing"] = m.group(1)
        if re.search(r"last caller|last time|did the", low):
            if NOTES:
                who, what = NOTES[-1]
                return f"The last caller was {who}, who asked for a reminder to {what}. Is there anything else I can help with?"
            return "There were no calls yet. Is there anything else I can help with?"
        if s["done"] and re.search(r"what will|what exactly", low):
            return f"I will remind you to {s['thing']}."
        if parting(text):
            return "You're welcome. Goodbye!"
        if s["thing"] and not s["done"]:
            if not s["name"]:
                return "Of course. What is your name?"
            s["done"] = True
            NOTES.append((s["name"], s["thing"]))
            return f"Thank you, {s['name'].split()[0]}. I have noted it: I will remind you to {s['thing']}. Is there anything else?"
        return "Is there anything else I can help with?"

    return agent
