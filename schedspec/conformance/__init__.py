"""Conformance of a scheduler: the level of each scenario, and a report that a project can publish."""
