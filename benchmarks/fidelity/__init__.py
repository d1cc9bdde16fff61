"""Measure whether what `schedspec plan` foretells happens: docs/fidelity.md."""
