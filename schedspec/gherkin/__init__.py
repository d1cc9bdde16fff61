"""Collect feature files as test modules, and check them before a scenario runs.

1. `collection` collects a file. `documents` parses the file; `lost_lines`, `step_check` and `sentence_check` find its
   mistakes, for which `things` tracks the names that exist at each sentence.
2. `bdd` binds each sentence to its step. Steps are declared with `step_decorators` and read `tables`.
3. `selection` selects scenarios, and `catalogue` lists all sentences.
"""
