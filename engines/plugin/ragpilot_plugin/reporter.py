"""Posts evictions to ragpilot from a thread of its own.

The engine's scheduler only puts what it saw into a bounded queue. The thread follows it with a tracker, collects what
became of requests for a short time, and posts it.
"""
import atexit
import http.client
import json
import logging
import queue
import threading
import time
import urllib.error
import urllib.request

log = logging.getLogger("ragpilot.plugin")

GONE = 0  # resident tokens of a request of which nothing is cached
QUIET = 60.0  # seconds in which the same answer is not logged again
TAKEN = b"Index not initialized"  # in a 503: ragpilot has taken the report, and has no index of its own


class Reporter:
    """Follows operations with a tracker and posts what it says.

    tracker.apply(op) takes one operation and returns {request id: resident tokens}, of which 0 means gone and None that
    what was found before does not hold any more. tracker.lose() forgets everything and returns the requests it had.
    """

    def __init__(self, url, tracker, key="", window=0.05, timeout=2.0, most_ops=100_000, most_pending=100_000):
        self.url = url.rstrip("/") + "/evict"
        self.tracker = tracker
        self.key = key
        self.window, self.timeout = window, timeout  # seconds
        self.pending = {}  # request id -> resident tokens, oldest first; only the thread touches it
        self.most_pending = most_pending
        self.warned = {}  # answer -> when it was last logged; only the thread touches it
        self.posted = self.failed = self.overflows = 0  # for tests and logs
        self._direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never by way of a proxy
        self._ops = queue.Queue(most_ops)
        self._overflow = threading.Event()
        self._start = threading.Lock()
        self._thread = None
        self._stopped = threading.Event()

    def put(self, op):
        """Called by the scheduler: never waits. Starts the thread in the process that has something to report. False:
        the queue is full, and everything put so far is going to be forgotten."""
        if self._thread is None:
            self._begin()
        try:
            self._ops.put_nowait(op)
        except queue.Full:
            self._overflow.set()
            return False
        return True

    def _begin(self):
        with self._start:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ragpilot-evict", daemon=True)
                self._thread.start()
                atexit.register(self.close)

    def close(self, patience=3.0):
        """Posts what is left and ends the thread, within patience seconds."""
        thread = self._thread
        if thread is None or self._stopped.is_set():
            return
        self._stopped.set()
        try:
            self._ops.put_nowait(None)
        except queue.Full:
            pass  # the thread is awake anyway
        thread.join(patience)

    def _run(self):
        wait = self.window
        try:
            while not self._stopped.is_set():
                self._collect(self._ops.get() if not self.pending else None, wait)
                wait = self.window if self._post() else min(max(2 * wait, 0.5), 5.0)
            self._collect(None, 0)
            self._post()
        except Exception:
            log.exception("ragpilot: reports of evictions have ended")

    def _collect(self, op, wait):
        """Applies operations for some time after the first one."""
        self._apply(op)
        end = time.monotonic() + wait
        while not self._stopped.is_set():
            left = end - time.monotonic()
            if left <= 0:
                break
            try:
                self._apply(self._ops.get(timeout=left))
            except queue.Empty:
                break
        while True:  # what is there without waiting
            try:
                self._apply(self._ops.get_nowait())
            except queue.Empty:
                return

    def _apply(self, op):
        if self._overflow.is_set():
            # Operations are missing: what the tracker says from here on may be wrong, so nothing is believed cached.
            self._overflow.clear()
            self.overflows += 1
            log.warning("ragpilot: too many evictions to follow; all requests are reported as gone")
            self._note({rid: GONE for rid in self.tracker.lose()})
        if op is not None:
            self._note(self.tracker.apply(op))

    def _note(self, changes):
        for rid, tokens in changes.items():
            self.pending.pop(rid, None)  # the newest word is the last
            if tokens is not None:
                self.pending[rid] = tokens
        while len(self.pending) > self.most_pending:
            del self.pending[next(iter(self.pending))]

    def _post(self):
        """Posts what is pending. False if it was not taken and may be taken later: then it stays pending."""
        if not self.pending:
            return True
        body = json.dumps({
            "request_ids": [rid for rid, tokens in self.pending.items() if tokens == GONE],
            "prefixes": [{"request_id": rid, "resident_tokens": n} for rid, n in self.pending.items() if n != GONE],
        }).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        if self.key:
            request.add_header("Authorization", "Bearer " + self.key)
        try:
            with self._direct.open(request, timeout=self.timeout):
                pass
        except urllib.error.HTTPError as e:
            with e:
                if not self._settled(e):
                    self.failed += 1
                    return False
        except (OSError, ValueError, http.client.HTTPException) as e:
            self.failed += 1
            self._warn(type(e), e)
            return False
        self.posted += 1
        self.pending = {}
        return True

    def _settled(self, answer):
        """Whether a report that was not answered with success need not be posted again: it was taken, or never will be."""
        if answer.code == 503 and TAKEN in start_of(answer):
            return True
        self._warn(answer.code, f"answers {answer.code}")
        return answer.code != 429 and answer.code < 500

    def _warn(self, kind, text):
        now = time.monotonic()
        if now - self.warned.get(kind, -QUIET) >= QUIET:
            self.warned[kind] = now
            log.warning("ragpilot: %s: %s", self.url, text)


def start_of(answer):
    """The first bytes of an answer's body, or none if it breaks off."""
    try:
        return answer.read(1024)
    except (OSError, ValueError, http.client.HTTPException):
        return b""
