"""Record the inputs and decisions of a scheduler, replay its cycles exactly, and explain its decisions.

`segments` writes and reads recordings; `replay` and `explain` are the commands that use them.
"""
