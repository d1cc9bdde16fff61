"""One scenario's life: its objects, its templates, its clean-up, the session and the cluster it runs on."""
