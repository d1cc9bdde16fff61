"""A queue scheduler for Kubernetes with Volcano's objects and semantics: a pure core (`decide`) in a live shell."""
