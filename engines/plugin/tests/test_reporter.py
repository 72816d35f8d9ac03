"""The queue, the thread and the posts."""
import logging
import os
import socket
import threading
import unittest

from ragpilot_plugin import hooks, reporter

from .receiver import Receiver



class Echo:
    """A tracker whose operations are what it says."""

    def __init__(self):
        self.known = ["x", "y"]

    def apply(self, op):
        if op == "bug":
            raise RuntimeError("bug in the tracker")
        return op

    def lose(self):
        return self.known


class ReporterTest(unittest.TestCase):
    def setUp(self):
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        self.receiver = Receiver()
        self.addCleanup(self.receiver.close)

    def reporter(self, url=None, **more):
        r = reporter.Reporter(url or self.receiver.url + "/", Echo(), **{"window": 0.01, **more})
        self.addCleanup(r.close)
        return r

    def test_one_post_of_many(self):
        r = self.reporter(window=0.2, key="secret")
        for i in range(100):
            r.put({f"a{i}": 0, "b": 1000 - i})
        gone, left = self.receiver.wait(lambda gone, left: len(gone) == 100 and left.get("b") == 901)
        self.assertEqual((len(gone), left), (100, {"b": 901}))
        self.assertLess(len(self.receiver.got), 10)
        path, body = self.receiver.got[0]
        self.assertEqual((path, sorted(body)), ("/evict", ["prefixes", "request_ids"]))
        self.assertEqual(self.receiver.headers[0]["Authorization"], "Bearer secret")

    def test_nothing_to_say(self):
        r = self.reporter()
        r.put({})
        r.put({"a": 0})
        self.receiver.wait(lambda gone, left: "a" in gone)
        self.assertEqual([b["request_ids"] for _, b in self.receiver.got], [["a"]])

    def test_taken_back(self):
        r = self.reporter(window=0.2)
        for op in ({"a": 0}, {"a": None}, {"b": 0}, {"b": 64}):
            r.put(op)
        self.assertEqual(self.receiver.wait(lambda gone, left: left), (set(), {"b": 64}))

    def test_never_waits(self):
        """Without a receiver, and without a reader, the scheduler is not held up and memory has a bound."""
        listener = socket.create_server(("127.0.0.1", 0))  # accepts and never answers
        self.addCleanup(listener.close)
        r = self.reporter(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=0.2, most_ops=50, most_pending=10)
        for i in range(10_000):
            r.put({f"a{i}": 0})
        self.assertLessEqual(r._ops.qsize(), 50)
        r.close(patience=30)
        self.assertFalse(r._thread.is_alive())
        self.assertLessEqual(len(r.pending), 10)
        self.assertGreater(r.failed, 0)

    def test_overflow_tells_that_all_is_gone(self):
        r = self.reporter(most_ops=2)
        held, go = threading.Event(), threading.Event()

        class Slow(Echo):
            def apply(self, op):
                held.set()
                go.wait(20)
                return op

        r.tracker = Slow()
        r.put({"a": 5})
        held.wait(20)
        self.assertEqual([r.put({"b": 5}) for _ in range(5)], [True, True, False, False, False])
        go.set()
        gone, left = self.receiver.wait(lambda gone, left: {"x", "y"} <= gone and "a" in left and "b" in left)
        self.assertEqual((gone, left), ({"x", "y"}, {"a": 5, "b": 5}))
        self.assertEqual(r.overflows, 1)

    def test_comes_back(self):
        """What could not be posted is posted when a receiver is there again."""
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
        r = self.reporter(f"http://127.0.0.1:{port}")
        r.put({"a": 0, "b": 10})
        while r.failed == 0:
            threading.Event().wait(0.01)
        r.url = self.receiver.url + "/evict"
        r.put({"b": 5})
        self.assertEqual(self.receiver.wait(lambda gone, left: "a" in gone and left.get("b") == 5), ({"a"}, {"b": 5}))

    def sour(self, status, text=b""):
        receiver = Receiver(status, text)
        self.addCleanup(receiver.close)
        return receiver, self.reporter(receiver.url)

    def test_refused_is_not_repeated(self):
        """What is wrong with a report, or with the key, does not get better. Nor is a report repeated that was taken."""
        receiver, r = self.sour(200)
        for status, text in ((400, b""), (401, b""), (503, b'{"detail":"Index not initialized. Call POST /reorder first."}')):
            receiver.status, receiver.text = status, text
            for name in (f"a{status}", f"b{status}"):
                r.put({name: 0})
                receiver.wait(lambda gone, left: name in gone)
        self.assertEqual([b["request_ids"] for _, b in receiver.got], [["a400"], ["b400"], ["a401"], ["b401"], ["a503"], ["b503"]])

    def test_overloaded_is_repeated(self):
        receiver, r = self.sour(502)
        r.put({"a": 0, "b": 10})
        receiver.wait(lambda gone, left: gone)
        receiver.status = 200
        r.put({"b": 5})  # the newest word is the one that arrives
        self.assertEqual(receiver.wait(lambda gone, left: left.get("b") == 5), ({"a"}, {"b": 5}))
        r.put({"c": 0})
        receiver.wait(lambda gone, left: "c" in gone)
        self.assertEqual(receiver.got[-1][1], {"request_ids": ["c"], "prefixes": []})

    def test_which_answers_keep_a_report(self):
        receiver, r = self.sour(200)
        full = b'{"detail":"Too many bytes of requests are being worked on, try again"}'
        for status, text, settled in ((200, b"", True), (403, b"", True), (413, b"", True), (429, b"", False), (500, b"", False),
                                      (502, b"", False), (503, b"", False), (503, full, False), (504, b"", False),
                                      (503, reporter.TAKEN, True), (500, reporter.TAKEN, False)):
            with self.subTest(status=status, text=text):
                receiver.status, receiver.text = status, text
                r.pending, r.failed = {"a": 0}, 0
                self.assertEqual(r._post(), settled)
                self.assertEqual((r.pending, r.failed), ({}, 0) if settled else ({"a": 0}, 1))

    def test_logged_once_a_minute(self):
        logging.disable(logging.NOTSET)
        receiver, r = self.sour(502)

        def logged():
            with self.assertLogs(reporter.log, "WARNING") as seen:
                reporter.log.warning("end")  # it wants one
                for _ in range(5):
                    r.pending = {"a": 0}
                    r._post()
            return [record.getMessage() for record in seen.records[1:]]

        url = receiver.url + "/evict"
        self.assertEqual(logged(), [f"ragpilot: {url}: answers 502"])
        self.assertEqual(logged(), [])
        receiver.status = 401
        self.assertEqual(logged(), [f"ragpilot: {url}: answers 401"])
        r.warned[502] -= reporter.QUIET
        self.assertEqual(logged(), [])
        receiver.status = 502
        self.assertEqual(logged(), [f"ragpilot: {url}: answers 502"])
        receiver.status, receiver.text = 503, reporter.TAKEN
        self.assertEqual(logged(), [])  # all is well

    def test_no_http(self):
        """Who answers something else does not end the thread."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        r = self.reporter(f"http://127.0.0.1:{listener.getsockname()[1]}")
        r.put({"a": 0})
        with listener.accept()[0] as conn:
            data = b""
            while not data.endswith(b"}"):
                data += conn.recv(65536)
            conn.sendall(b"hello\r\n\r\n")
        while r.failed == 0 and r._thread.is_alive():
            threading.Event().wait(0.01)
        self.assertTrue(r._thread.is_alive())
        r.url = self.receiver.url + "/evict"
        self.receiver.wait(lambda gone, left: "a" in gone)

    def test_close_posts_the_rest(self):
        r = self.reporter(window=30)
        r.put({"a": 0})
        r.close(patience=20)
        self.assertEqual(self.receiver.merged(), ({"a"}, {}))
        self.assertFalse(r._thread.is_alive())

    def test_a_bug_ends_the_thread_alone(self):
        r = self.reporter()
        r.put("bug")
        r._thread.join(20)
        self.assertFalse(r._thread.is_alive())
        r.put({"a": 0})  # the scheduler notices nothing


class WrapTest(unittest.TestCase):
    def setUp(self):
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def test_arguments_by_name(self):
        class Engine:
            def store(self, request, blocks, size=16, *, group=0, mask=None):
                """Doc."""
                return (request, blocks, size, group, mask)

        seen, guard = [], hooks.Guard()
        hooks.wrap(guard, Engine, "store", lambda self, a, result, before: seen.append((a["size"], a["blocks"], a["group"], result, before)),
                   before=lambda self, a: a["request"])
        self.assertEqual(Engine().store("r", [1], mask="m"), ("r", [1], 16, 0, "m"))
        self.assertEqual(Engine().store(request="r", blocks=[2], size=8, group=3), ("r", [2], 8, 3, None))
        self.assertEqual(seen, [(16, [1], 0, ("r", [1], 16, 0, "m"), "r"), (8, [2], 3, ("r", [2], 8, 3, None), "r")])
        self.assertEqual(Engine.store.__doc__, "Doc.")
        with self.assertRaises(TypeError):
            Engine().store()  # the engine's own error, not ours

    def test_own_errors_switch_off(self):
        class Engine:
            def a(self):
                return 1

            def b(self):
                return 2

        guard, called = hooks.Guard(), []
        hooks.wrap(guard, Engine, "a", lambda *_: 1 / 0)
        hooks.wrap(guard, Engine, "b", lambda *_: called.append(1), before=lambda *_: 1 / 0)
        engine = Engine()
        self.assertEqual((engine.b(), engine.a(), engine.b()), (2, 1, 2))
        self.assertEqual((guard.on, called), (False, []))

    def test_engines_errors_pass(self):
        class Engine:
            def a(self):
                raise KeyError("engine")

        guard = hooks.Guard()
        hooks.wrap(guard, Engine, "a", lambda *_: None)
        with self.assertRaises(KeyError):
            Engine().a()
        self.assertTrue(guard.on)

    def test_no_such_method(self):
        class Engine:
            thing = 5

        self.assertFalse(hooks.wrap(hooks.Guard(), Engine, "a", None))
        self.assertFalse(hooks.wrap(hooks.Guard(), Engine, "thing", None))

    def test_trackable(self):
        for rid, prefix, want in (("a", "", True), ("", "", False), ("cmpl-", "", False), ("HEALTH_CHECK_1", "", False), ("chatcmpl-HEALTH_CHECK", "", False),
                                  ("chatcmpl-req-1-0a1b2c3d", "req-", True), ("cmpl-x", "req-", False)):
            self.assertEqual(hooks.trackable(rid, prefix), want, rid)


if __name__ == "__main__":
    unittest.main()
