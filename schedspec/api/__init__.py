"""The Kubernetes API as scenarios use it, and what the whole harness shares.

`client.Api` calls the API server on objects of `kinds`; `crds` installs definitions, and `names` renames objects that
collide on a shared cluster. The harness shares `errors`, `timeouts`, the `clock` of a run, and the `capabilities` and
`marks` of schedulers.
"""
