"""How the tester reaches an agent: in process, over a socket, by phone."""
