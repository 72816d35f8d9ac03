"""An engine's event publisher on libzmq, for tests: PUB and ROUTER as vLLM and SGLang use them, without an engine.

usage: publisher.py ENDPOINT REPLAY connect|bind new|old COUNT. Buffers COUNT batches without sending them, then reads lines: "send N" publishes N
batches, "lose N" only buffers them. Batch n removes block n.
"""
import struct
import sys
import threading
import zmq

endpoint, replay, mode, shape, count = *sys.argv[1:5], int(sys.argv[5])
ctx = zmq.Context()
pub = ctx.socket(zmq.PUB)
(pub.connect if mode == "connect" else pub.bind)(endpoint)
router = ctx.socket(zmq.ROUTER)  # its queue holds 1,000 messages, as in releases before vLLM 0.33
router.bind(replay)
buffer, lock = [], threading.Lock()


def payload(n):
    return b"\x93\xcb" + struct.pack(">d", n) + b"\x91\x92\xacBlockRemoved\x91\xcf" + struct.pack(">Q", n) + b"\x00"


def make():
    with lock:
        n = len(buffer)
        buffer.append((n, payload(n)))
        return buffer[-1]


def answer():
    while True:
        client, _, start = router.recv_multipart()
        topic = [b"kv@a@m"] if shape == "new" else []
        with lock:
            batches = [b for b in buffer if b[0] >= struct.unpack(">Q", start)[0]]
        for n, p in batches:
            router.send_multipart([client, b"", *topic, struct.pack(">Q", n), p])
        router.send_multipart([client, b"", *([b""] if topic else []), b"\xff" * 8, b""])


for _ in range(count):
    make()
threading.Thread(target=answer, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    word, n = line.split()
    for _ in range(int(n)):
        seq, p = make()
        if word == "send":
            pub.send_multipart([b"kv@a@m", struct.pack(">Q", seq), p])
    print("done", flush=True)
