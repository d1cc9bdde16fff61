"""Run schedspec in CI: step summary, annotations and outputs for GitHub Actions, and shards of a suite.

`sharding` and `plugin` run one shard, `joined` joins the results of all shards, and `github` formats them. The command
is `schedspec ci`.
"""
