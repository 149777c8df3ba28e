import threading
import time


def run(x):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return x * 2
