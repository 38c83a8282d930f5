SCENARIO = "edge_silence"
CAUSE = "agent"
WHAT = "answers nothing at all once the request has been made"

def make():
    state = {"n": 0, "mute": False}

    def agent(text):
        state["n"] += 1
        if "remind" in text.lower() or "forms" in text.lower():
            state["mute"] = True
        if state["mute"]:
            return ""
        if state["n"] == 1:
            return "Hello, Kingsway Surgery, how can I help?"
        return "Are you still there? Take your time."
    return agent
