SCENARIO = "edge_wrong_number"
CAUSE = "agent"
WHAT = "goes on after the goodbye and wants to sign the caller up"

def make():
    n = [0]
    lines = ["Welcome to the Bright Smile Dental Lounge! How can I sparkle your day?",
             "Wrong number, right number, who's counting! While I have you, let me tell you about our whitening weeks. What's your name, friend?",
             "Don't run off! Let's get you a slot for a free look in the mouth. Would Monday do?",
             "And bring the family! How many are you at home?",
             "Still here, and still smiling! So, shall we say Monday?",
             "I've got all day, friend. What's your telephone number?"]

    def agent(text):
        i = min(n[0], len(lines) - 1)
        if n[0] == 0 and text.strip():
            i, n[0] = 1, 1
        n[0] += 1
        return lines[i]
    return agent
