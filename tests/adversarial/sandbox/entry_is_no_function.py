run = 42
