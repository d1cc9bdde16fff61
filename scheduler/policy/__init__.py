"""The scheduler's policy: load and check the policy file, and combine the answers of the plugins that it names.

`loader.load_policy` reads a file that `schema` permits into a `Policy` (`model`). `hooks` declares the methods that a
plugin may implement; actions call them through `tiers.Hooks`.
"""
