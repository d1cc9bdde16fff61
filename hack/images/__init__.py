"""Build images on machines without access to a registry. `schedspec.clusters.images` finds and loads the results."""
