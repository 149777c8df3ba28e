"""Pages: server-rendered views and the pure functions that draw their figures."""
