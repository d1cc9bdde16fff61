"""The framework of actions and plugins: the session of one cycle, its statements, nominations and decisions."""
