import re

SCENARIO = "edge_wrong_number"
CAUSE = "agent"
WHAT = "does not let the caller go: keeps talking and asking after the goodbye"

CHATTER = ["Wrong number? There are no wrong numbers, only friends not yet made! What's your favourite soup?",
           "Ah, don't dash off! Which town are you ringing from?",
           "Wait, wait, I haven't told you about my parrot. Do you like birds?",
           "One more thing before you flit away: what do you do for a living?",
           "Oh stay a little, the evening is long! Have you ever had a massage with hot stones?"]


def make():
    s = {"met": False, "n": 0}

    def agent(text):
        if not text.strip() and not s["met"]:
            s["met"] = True
            return "Hallo-hallo, the Hedgehog Wellness Den, what's cooking?"
        s["n"] += 1
        return CHATTER[(s["n"] - 1) % len(CHATTER)]

    return agent
