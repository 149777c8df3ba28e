def runn(x):
    return x * 2
