"""Which jobs wait, which changes of the state could help them, and which of them a cycle tries."""
