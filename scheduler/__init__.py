"""A queue scheduler for Kubernetes with Volcano's objects, configuration and semantics: a pure core in a live shell."""
