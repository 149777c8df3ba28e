"""``make run``: starts, watches and stops every process of one machine."""
