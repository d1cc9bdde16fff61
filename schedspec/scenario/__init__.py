"""The lifecycle of a scenario: its objects, templates and clean-up, and the session with its cluster."""
