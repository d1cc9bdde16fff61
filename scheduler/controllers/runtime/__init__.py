"""The shared parts of all controllers: the shell, the views, the writes."""
