"""What actions and plugins work with: the session of one cycle, its statements, its nominations, its decisions."""
