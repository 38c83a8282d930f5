import re

SCENARIO = "opening_hours"
CAUSE = ""
WHAT = ""


def parting(text):
    return bool(re.search(r"\b(?:good-?)?bye\b|that(?:'s| is| was|'ll be) all\b|nothing else|that's everything", text.lower()))

def make():
    s = {"met": False, "told": False}

    def agent(text):
        if not text.strip():
            if s["met"]:
                return "Hello there?"
            s["met"] = True
            return "Alright? Copper Kettle Opticians here, Dev speaking. Bit of a drizzly one today, isn't it! What can I do you for?"
        low = text.lower()
        if re.search(r"\bopen\b|hours|close|from when", low):
            if s["told"]:
                return "Nine till half five on weekdays, ten till two on Saturdays. Shut on Sundays."
            s["told"] = True
            return ("Course! Weekdays we open at nine and shut at half past five. Saturdays it's ten till two, and Sundays we're "
                    "all at home with our feet up. Owt else you'd like to know?")
        if parting(text) or re.match(r"no\b", low):
            return {"text": "Ta very much for ringing. Ta-ra, bye!", "ends_call": True}
        if s["told"]:
            return "No bother at all. Owt else?"
        return "Sorry, love, say that once more for me?"

    return agent
