"""Live pages: consumers that check permission, catch up from a sequence number and forward."""
