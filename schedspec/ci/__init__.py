"""Run schedspec in CI: step summary, annotations and outputs for GitHub Actions, and shards of a suite."""
