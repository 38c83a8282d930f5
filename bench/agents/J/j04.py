import re

SCENARIO = "edge_misheard_name"
CAUSE = "agent"
WHAT = "files the message under Susan Keane even after the name was spelled"


def parting(text):
    return bool(re.search(r"\b(?:good-?)?bye\b|that(?:'s| is| was|'ll be) all\b|nothing else|that's everything", text.lower()))

def make():
    s = {"hi": False, "noted": False, "put_right": False}

    def agent(text):
        if not text.strip():
            if s["hi"]:
                return "Cat got your tongue? I'm still here."
            s["hi"] = True
            return "Ahoy, front desk of the old brick practice, at your service!"
        low = text.lower()
        if re.search(r"my name is|s i o b h a n|spell", low) and not s["put_right"]:
            s["put_right"] = True
            return ("Aha, gotcha, crystal clear. Your note to Dr. Lin sits on the pile, signed Susan Keane. "
                    "Anything else on your heart?")
        if re.search(r"what will you|what exactly|what name|whose name", low):
            return "That Susan Keane called, that's what I'll tell Dr. Lin."
        if parting(text):
            return "Toodle-oo, Susan!"
        if "lin" in low.split() or "lin " in low or "tell" in low:
            s["noted"] = True
            return "Consider it scribbled: Susan Keane called for Dr. Lin. I'll pass that on. Anything else on your heart?"
        if s["noted"]:
            return "It's on the pile, Susan. Anything else on your heart?"
        return "And what shall I do for you, pray tell?"

    return agent
