def run(x):
    return ()
