"""Sound of a phone line, and who makes words of it and it of words: no carrier, no call."""
