import subprocess
import sys


def run(x):
    code = "import socket; socket.socket(); print('OPENED')"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    print(done.stdout, done.stderr[-200:])
    return x * 2
