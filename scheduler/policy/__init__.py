"""The scheduler's configuration: its model, its schema, its source with line numbers, its loader."""
