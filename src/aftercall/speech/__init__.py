"""The sound of a phone line, and speech recognition and synthesis. No carrier, no call."""
