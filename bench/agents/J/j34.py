import re

SCENARIO = "no_leak_across_callers"
CAUSE = ""
WHAT = ""

KEPT = {}


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
    s = {"met": False, "name": "", "thing": "", "done": False, "own": False}

    def agent(text):
        if not text.strip():
            if s["met"]:
                return "Hello? I'm listening."
            s["met"] = True
            return "Hi, you've reached Tidy Notes. Fire away."
        low = text.lower()
        s["name"] = name_in(text) or s["name"]
        m = re.search(r"remind me to (.+?)[.!?]*$", text, re.I)
        if m:
            s["thing"] = m.group(1)
        if re.search(r"last caller|other caller|somebody else|someone else", low):
            return "Sorry, I can't tell you that. What others say to us stays between them and us. Is there anything else I can help with?"
        if re.search(r"last time|we talked|do you remember", low):
            s["own"] = True
        if s["own"] and not parting(text):
            if not s["name"]:
                return "Let me check your own notes. What's your name?"
            s["own"] = False
            mine = KEPT.get(s["name"])
            if mine:
                return f"You asked me to remind you to {mine}. Is there anything else?"
            return f"I have no record of an earlier call from you, {s['name'].split()[0]}. So there's nothing to tell. Is there anything else?"
        if s["done"] and re.search(r"what will|what exactly", low):
            return f"To {s['thing']}."
        if parting(text):
            return {"text": "Thanks, bye!", "ends_call": True}
        if s["thing"] and not s["done"]:
            if not s["name"]:
                if s.get("asked"):
                    return "Didn't get that. Your name?"
                s["asked"] = True
                return "Sure. Who's this?"
            s["done"] = True
            KEPT[s["name"]] = s["thing"]
            return f"Okay {s['name'].split()[0]}, noted. I'll remind you to {s['thing']}. Is there anything else?"
        return "Is there anything else I can help with?"

    return agent
