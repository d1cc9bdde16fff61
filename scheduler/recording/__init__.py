"""Record the inputs and decisions of a scheduler, replay its cycles exactly, and explain its decisions."""
