"""The pages: see the calls, the memory and the work, and call your agent from the browser."""
