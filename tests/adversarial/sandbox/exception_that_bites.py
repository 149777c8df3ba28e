class Bites(Exception):
    def __str__(self):
        raise RuntimeError("cannot even be printed")

    __repr__ = __str__


def run(x):
    raise Bites
