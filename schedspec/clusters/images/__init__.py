"""Find and load the images that Kind clusters need. `hack.images` builds them where no image registry is reached."""
