"""The programs that clusters need: which, where from, and kept where."""
