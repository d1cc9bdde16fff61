"""What a cluster showed: the watcher, the history, views of it, and waits over it."""
