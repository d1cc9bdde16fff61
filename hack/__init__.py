"""Tools for developers that are not part of the wheel."""
