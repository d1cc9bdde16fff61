"""Conformance of a scheduler: the level of each scenario, and a report that a project can publish.

`levels` defines the tags, `report_file.make` builds the report of the command `schedspec conformance`.
"""
