"""Find and load the images that Kind clusters need. `hack.images` builds them if no image registry can be reached."""
