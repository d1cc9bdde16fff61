"""The waiting jobs: which changes of the state could help each of them, and which of them a cycle tries."""
