"""Whether the device itself can be trusted: asked at start, and whenever something looks odd."""
