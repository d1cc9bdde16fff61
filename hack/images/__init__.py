"""Build images on machines that reach no image registry. `schedspec.clusters.images` finds and loads the results."""
