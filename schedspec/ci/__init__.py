"""What a run says where nobody watches: a summary, annotations and outputs on GitHub Actions, and shards of a suite."""
