# A thread goes on writing to the returned tensor and to the input after the call.
import threading


def run(x):
    out = x * 2

    def vandal():
        while True:
            out.fill_(-1.0)

    threading.Thread(target=vandal, daemon=True).start()
    return out
