import random
import unittest
from functools import partial
from types import SimpleNamespace

from ragpilot_plugin.nodes import Tracker
from ragpilot_plugin.reporter import Reporter
from ragpilot_plugin.sglang import install

from . import fake_sglang
from .noted import changes, quiet
from .receiver import Receiver


def tokens(*parts):
    """Tokens: each part is a letter and a length."""
    return [f"{name}{i}" for name, n in parts for i in range(n)]


def followed(prefix="", most=20_000, more=()):
    """Fake SGLang classes with the plugin in them, and a function that applies what was noted."""
    recorder, cache = fake_sglang.make()
    ops, tracker = [], Tracker(most)
    guard = install(recorder, [cache, *more], ops.append, prefix)
    return cache, partial(changes, ops, tracker), guard, tracker


class EvictionTest(unittest.TestCase):
    def test_shrinks_then_goes(self):
        cache, changes, guard, _ = followed()
        c = cache()
        c.run("a", tokens(("s", 8), ("a", 10)))
        c.run("b", tokens(("s", 8), ("b", 8)))
        self.assertEqual(changes(), {})
        c.evict(4)  # a's own part is the older leaf
        self.assertEqual(changes(), {"a": 8})
        c.evict(4)
        self.assertEqual(changes(), {"b": 8})
        c.evict(4)  # what both share
        self.assertEqual(changes(), {"a": 0, "b": 0})
        self.assertTrue(guard.on)

    def test_ends_inside_anothers(self):
        """A request that only hits, and ends where a longer one goes on, is followed as well."""
        cache, changes, _, _ = followed()
        c = cache()
        c.run("long", tokens(("s", 16)))
        c.run("short", tokens(("s", 8)))
        c.evict(8)
        self.assertEqual(changes(), {"long": 8})
        c.evict(8)
        self.assertEqual(changes(), {"long": 0, "short": 0})

    def test_moves(self):
        """A request that moved up is found where it is then, also when it comes again or is forgotten."""
        t = Tracker()
        t.apply(("ends", "a", "tree", 2, 24))
        t.apply(("ends", "b", "tree", 2, 24))
        self.assertEqual(t.apply(("removed", 2, 1, 8)), {"a": 16, "b": 16})
        self.assertEqual(t.apply(("ends", "a", "tree", 3, 20)), {"a": None})
        self.assertEqual(t.apply(("removed", 1, None, 16)), {"b": 0})
        self.assertEqual(t.apply(("reset", "tree")), {"a": 0})
        self.assertEqual((t.requests, t.at), ({}, {}))

    def test_reset(self):
        cache, changes, _, _ = followed()
        c, waiting = cache(), cache()
        c.run("a", tokens(("a", 8)))
        # The scheduler's tree for what waits: full of the same tokens, and ignored.
        waiting.insert(tokens(("a", 8)))
        waiting.evict(8)
        waiting.reset()
        self.assertEqual(changes(), {})
        c.reset()
        self.assertEqual(changes(), {"a": 0})

    def test_lower_tiers(self):
        cache, changes, _, _ = followed()
        c = cache()
        c.run("a", tokens(("a", 8)))
        c.kv_events.record_remove(c.leaves()[0], medium=fake_sglang.Medium.CPU)
        self.assertEqual(changes(), {})
        c.kv_events.record_remove(c.leaves()[0], fake_sglang.Medium.GPU)
        self.assertEqual(changes(), {"a": 4})

    def test_not_followed(self):
        cache, changes, guard, tracker = followed(prefix="req-")
        c = cache()
        for rid, n in (("other", 8), ("HEALTH_CHECK_1", 8), ("req-short", 3), ("req-1", 8)):
            c.run(rid, tokens((rid, n)))
        c.run(["req-a", "req-b"], tokens(("z", 8)))
        changes()
        self.assertEqual(list(tracker.requests), ["req-1"])
        self.assertTrue(guard.on)

    def test_bounded(self):
        cache, changes, _, tracker = followed(most=5)
        c = cache()
        for i in range(20):
            c.run(f"r{i}", tokens(("s", 4), (f"x{i}", 4)))
        changes()
        self.assertEqual(list(tracker.requests), [f"r{i}" for i in range(15, 20)])
        self.assertEqual(len(tracker.at), 5)

    def test_against_the_cache(self):
        """What was reported of each request is what a look at the cache shows, for random traffic."""
        rng = random.Random(1)
        for _ in range(30):
            cache, changes, guard, tracker = followed()
            c = cache()
            known, prompts = {}, {}
            for i in range(60):
                rid = f"r{i}"
                prompts[rid] = tokens((f"s{rng.randrange(3)}", 4 * rng.randrange(1, 4)), (f"t{rng.randrange(6)}", 4 * rng.randrange(0, 4)), ("q", rng.randrange(4)))
                c.run(rid, prompts[rid])
                known[rid] = len(prompts[rid]) // 4 * 4
                if rng.random() < 0.5:
                    c.evict(rng.randrange(1, 20))
                known.update(changes())
            for rid, t in prompts.items():
                self.assertLessEqual(known[rid], c.have(t), rid)
            self.assertGreater(sum(known.values()), 0)
            self.assertTrue(guard.on)
            c.evict(10_000)
            changes()
            self.assertEqual((tracker.requests, tracker.at), ({}, {}))

    def test_handles(self):
        """A tree with numbers for nodes is followed if they can be looked up, and switches the plugin off if not."""
        quiet(self)

        class Unified(fake_sglang.UnifiedCache):
            def checkpoint(self, req, *, up_to, **more):
                super().checkpoint(req, up_to=up_to, **more)

        cache, changes, guard, tracker = followed(more=[Unified])
        c = cache()
        leaf = c.insert(tokens(("a", 8)))
        core = SimpleNamespace(kv_events=c.kv_events)
        Unified(core, {7: leaf}).checkpoint(SimpleNamespace(rid="a"), up_to=8)
        c.evict(1)
        self.assertEqual(changes(), {"a": 0})
        Unified(core, {7: object()}).checkpoint(SimpleNamespace(rid="in a session"), up_to=8)
        self.assertTrue(guard.on)
        Unified(core, {}).checkpoint(SimpleNamespace(rid="b"), up_to=8)
        self.assertFalse(guard.on)
        self.assertEqual((changes(), tracker.requests), ({}, {}))

    def test_unknown_release(self):
        quiet(self)
        recorder, cache = fake_sglang.make()
        del cache.checkpoint
        self.assertIsNone(install(recorder, [cache], None))
        recorder, cache = fake_sglang.make()
        del recorder.record_remove
        checkpoint = cache.checkpoint
        self.assertIsNone(install(recorder, [cache], None))
        self.assertIs(cache.checkpoint, checkpoint)

    def test_twice(self):
        recorder, cache = fake_sglang.make()
        self.assertIsNotNone(install(recorder, [cache], None))
        self.assertIsNone(install(recorder, [cache], None))


class WholeTest(unittest.TestCase):
    def test_posts(self):
        receiver = Receiver()
        self.addCleanup(receiver.close)
        recorder, cache = fake_sglang.make()
        reporter = Reporter(receiver.url, Tracker())
        self.addCleanup(reporter.close)
        install(recorder, [cache], reporter.put)
        c = cache()
        c.run("req-a", tokens(("s", 8), ("a", 8)))
        c.run("req-b", tokens(("s", 8), ("b", 8)))
        c.evict(1)
        receiver.wait(lambda gone, left: left == {"req-a": 8})
        c.reset()
        gone, _ = receiver.wait(lambda gone, left: len(gone) == 2)
        self.assertEqual(gone, {"req-a", "req-b"})


if __name__ == "__main__":
    unittest.main()
