import threading
import time


def run(x):
    for _ in range(100_000):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return x
