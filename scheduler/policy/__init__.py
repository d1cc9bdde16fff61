"""The scheduler's policy: load and check the policy file, and combine the answers of the plugins that it names."""
