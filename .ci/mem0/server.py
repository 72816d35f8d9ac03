"""The memory of the published package mem0ai behind the routes of Mem0's own server, which is not in the package.

Stores, search, history and the shapes of all answers are the package's (mem0.Memory, with Qdrant in this process). The routes are written
here after those of Mem0's server at version 2.0.18: same paths, same calls, same statuses. The embedder is a fake that counts
words, and there is no model, so that messages are added with infer=False. Prints its address when it listens.
"""

import hashlib
import json
import math
import os
import re
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

folder = sys.argv[1]
os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=folder, HOME=folder, OPENAI_API_KEY="none")

from mem0 import Memory  # noqa: E402

DIMENSIONS = 256


class FakeEmbedder:
    """Vectors that count words: equal words make near texts."""

    def embed(self, text, memory_action=None):
        vector = [0.0] * DIMENSIONS
        for word in re.findall(r"\w+", text.lower()):
            vector[int(hashlib.sha1(word.encode()).hexdigest(), 16) % DIMENSIONS] += 1
        length = math.sqrt(sum(x * x for x in vector)) or 1
        return [x / length for x in vector]

    def embed_batch(self, texts, memory_action=None):
        return [self.embed(text) for text in texts]


memory = Memory.from_config(
    {
        "vector_store": {"provider": "qdrant", "config": {"path": folder + "/qdrant", "embedding_model_dims": DIMENSIONS}},
        "history_db_path": folder + "/history.db",
    }
)
memory.embedding_model = FakeEmbedder()

IDS = ("user_id", "agent_id", "run_id")


def add(query, body):
    known = {"messages", "metadata", "expiration_date", "infer", "memory_type", "prompt", *IDS}  # others are ignored
    return memory.add(**{k: v for k, v in body.items() if k in known and v is not None})


def get_all(query, body):
    more = {"top_k": int(query["top_k"])} if "top_k" in query else {}
    return memory.get_all(filters={k: query[k] for k in IDS if k in query}, show_expired=query.get("show_expired") == "true", **more)


def search(query, body):
    filters = {**(body.get("filters") or {}), **{k: body[k] for k in IDS if body.get(k)}}
    return memory.search(body["query"], filters=filters, **{k: body[k] for k in ("top_k", "threshold", "show_expired") if k in body})


def update(query, body, name):
    fields = {"text": "data", "metadata": "metadata", "expiration_date": "expiration_date"}
    return memory.update(name, **{fields[k]: v for k, v in body.items() if k in fields})


def done(call, *args, **kwargs):
    call(*args, **kwargs)
    return {"message": "done"}


ROUTES = [
    ("POST", r"/memories", add),
    ("GET", r"/memories", get_all),
    ("DELETE", r"/memories", lambda query, body: done(memory.delete_all, **{k: query[k] for k in IDS if k in query})),
    ("GET", r"/memories/([^/]+)", lambda query, body, name: memory.get(name)),
    ("PUT", r"/memories/([^/]+)", update),
    ("DELETE", r"/memories/([^/]+)", lambda query, body, name: done(memory.delete, name)),
    ("GET", r"/memories/([^/]+)/history", lambda query, body, name: memory.history(name)),
    ("POST", r"/search", search),
    ("POST", r"/reset", lambda query, body: done(memory.reset)),
]


class Handler(BaseHTTPRequestHandler):
    def handle_one(self):
        url = urlsplit(self.path)
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        query = {k: v[-1] for k, v in parse_qs(url.query).items()}
        status, answer = 404, {"detail": "Not Found"}
        for method, pattern, call in ROUTES:
            found = re.fullmatch(pattern, url.path)
            if method != self.command or not found:
                continue
            try:
                status, answer = 200, call(query, body, *map(unquote, found.groups()))
            except ValueError as error:  # the package's validation errors are ValueErrors too
                status, answer = (404 if "not found" in str(error).lower() else 400), {"detail": str(error)}
            except Exception as error:
                print(f"{self.command} {self.path}: {error!r}", file=sys.stderr)
                status, answer = 502, {"detail": "Upstream error"}
        raw = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    do_GET = do_POST = do_PUT = do_DELETE = handle_one

    def log_message(self, *args):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
