def run(x):
    while True:
        pass
