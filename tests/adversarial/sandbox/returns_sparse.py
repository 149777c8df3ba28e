def run(x):
    return x.to_sparse()
