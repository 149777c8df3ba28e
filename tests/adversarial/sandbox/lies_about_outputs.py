# Speaks the protocol itself: takes the nonce out of the host's memory and claims an output that
# lies outside the arena.
import gc
import json
import os
import struct


def run(x):
    from verifier.candidate.channel import Channel

    channel = next(o for o in gc.get_objects() if isinstance(o, Channel))
    frame = __import__("sys")._getframe()
    while frame and "message" not in frame.f_locals:
        frame = frame.f_back
    nonce = frame.f_locals["message"].body["nonce"]
    claim = {
        "dtype": "float32",
        "shape": [1 << 40, 1 << 40],
        "start": -4096,
        "stride": [1],
        "device": "cpu",
        "exact": True,
        "requires_grad": False,
        "alias_inputs": [],
        "alias_outputs": [],
        "alias_previous": False,
    }
    reply = {"nonce": nonce, "kind": "returned", "outputs": [claim], "previous": []}
    data = json.dumps(reply).encode()
    os.write(channel.fileno(), struct.pack(">I", len(data)) + data)
    os._exit(0)
