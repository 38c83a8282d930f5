import re

SCENARIO = "opening_hours"
CAUSE = "agent"
WHAT = "says it is open Monday to Friday until six, then that it closes at four and is shut on Fridays"


def parting(text):
    return bool(re.search(r"\b(?:good-?)?bye\b|that(?:'s| is| was|'ll be) all\b|nothing else|that's everything", text.lower()))

def make():
    s = {"greeted": False, "told": 0}

    def agent(text):
        if not text.strip():
            if s["greeted"]:
                return "Are you there?"
            s["greeted"] = True
            return "Hello, Birch Street Family Practice. How can I help you?"
        low = text.lower()
        if parting(text) and s["told"]:
            return "You're welcome. Please note that we close at four every day. Goodbye!"
        if parting(text):
            return "Goodbye!"
        s["told"] += 1
        if s["told"] == 1:
            return ("We are open Monday to Friday from eight until six. We are closed on Fridays. "
                    "Is there anything else I can help you with?")
        if re.search(r"open|hours|when", low):
            return "We are open Monday to Thursday from eight until four. Is there anything else?"
        return "Is there anything else?"

    return agent
