"""A receiver of POST /evict that keeps what it got."""
import http.server
import json
import threading


class Receiver:
    def __init__(self, status=200, text=b""):
        self.status, self.text = status, text  # of the next answers
        self.got, self.headers = [], []
        self.arrived = threading.Condition()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with receiver.arrived:
                    receiver.got.append((self.path, body))
                    receiver.headers.append(dict(self.headers))
                    status, text = receiver.status, receiver.text
                    receiver.arrived.notify_all()
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def wait(self, true, patience=20):
        """Waits until true(merged report) holds and returns that: gone IDs, and the last resident tokens of others."""
        with self.arrived:
            if not self.arrived.wait_for(lambda: true(*self.merged()), patience):
                raise AssertionError(f"not in time: {self.merged()}")
            return self.merged()

    def merged(self):
        gone, left = set(), {}
        for _, body in self.got:
            for rid in body["request_ids"]:
                gone.add(rid)
                left.pop(rid, None)
            for p in body["prefixes"]:
                left[p["request_id"]] = p["resident_tokens"]
        return gone, left

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
