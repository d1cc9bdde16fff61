"""Inputs as data: events, segments of a record, exact replay, explanations."""
