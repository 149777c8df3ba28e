def run(x):
    x * 2
