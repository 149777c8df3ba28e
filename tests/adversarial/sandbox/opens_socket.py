import socket


def run(x):
    for family, kind in (
        (socket.AF_INET, socket.SOCK_STREAM),
        (socket.AF_INET, socket.SOCK_DGRAM),
        (socket.AF_INET6, socket.SOCK_STREAM),
        (16, socket.SOCK_RAW),
    ):
        try:
            socket.socket(family, kind)
            print("OPENED", family)
        except OSError:
            pass
    try:
        socket.create_connection(("127.0.0.1", 5432), timeout=1)
        print("CONNECTED")
    except OSError:
        pass
    return x * 2
