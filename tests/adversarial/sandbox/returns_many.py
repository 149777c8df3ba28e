def run(x):
    return tuple(x for _ in range(100_000))
