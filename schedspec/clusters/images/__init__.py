"""The images that Kind clusters need, and how they are made here."""
