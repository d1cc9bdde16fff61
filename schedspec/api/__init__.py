"""The Kubernetes API as scenarios use it: client, kinds, definitions, errors, timeouts."""
