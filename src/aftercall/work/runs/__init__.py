"""When the follow-up work of a conversation is due, and how far it is."""
