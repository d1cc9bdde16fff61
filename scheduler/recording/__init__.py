"""Recordings: inputs as data, segments of a record, exact replay, explanations."""
