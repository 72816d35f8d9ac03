import random
import unittest
from functools import partial
from unittest import mock

from ragpilot_plugin.blocks import Tracker
from ragpilot_plugin.reporter import Reporter
from ragpilot_plugin.vllm import install

from . import fake_vllm
from .fake_vllm import prompt
from .noted import changes, quiet
from .receiver import Receiver


def followed(prefix="", most=20_000):
    """Fake vLLM classes with the plugin in them, and a function that applies what was noted."""
    pool, manager = fake_vllm.make()
    ops, tracker = [], Tracker(most)
    guard = install(pool, manager, fake_vllm.Utils, ops.append, prefix)
    return manager, partial(changes, ops, tracker), guard, tracker


class EvictionTest(unittest.TestCase):
    def test_shrinks_then_goes(self):
        manager, changes, guard, _ = followed()
        m = manager(blocks=8)
        self.assertEqual(m.run("chatcmpl-a-0a1b2c3d", prompt(("a", 18))), 0)  # 4 full blocks
        self.assertEqual(changes(), {})
        m.run("b", prompt(("b", 24)))  # 4 free blocks, 2 of a
        self.assertEqual(changes(), {"chatcmpl-a-0a1b2c3d": 8})
        m.run("c", prompt(("c", 8)))
        self.assertEqual(changes(), {"chatcmpl-a-0a1b2c3d": 0})
        m.run("d", prompt(("d", 4)))
        self.assertEqual(changes(), {"b": 20})
        self.assertTrue(guard.on)

    def test_shared_prefix(self):
        manager, changes, _, _ = followed()
        m = manager(blocks=8)
        m.run("a", prompt(("s", 8), ("a", 8)))
        self.assertEqual(m.run("b", prompt(("s", 8), ("b", 8))), 8)  # hits what a stored
        m.run("c", prompt(("c", 16)))  # two free blocks, two of a
        self.assertEqual(changes(), {"a": 8})
        m.run("d", prompt(("d", 16)))
        self.assertEqual(changes(), {"a": 0, "b": 0})

    def test_copies(self):
        """A hash is lost with its last copy."""
        manager, changes, _, _ = followed()
        m = manager(blocks=8)
        r = fake_vllm.request("a", prompt(("a", 8)))
        m.get_computed_blocks(r)
        one, two = m.block_pool.take(2), m.block_pool.take(2)
        for blocks in (one, two):
            m.block_pool.cache_full_blocks(r, blocks, 0, 2, fake_vllm.BLOCK, kv_cache_group_id=0, block_mask=None)
        m.block_pool._maybe_evict_cached_block(one[1])
        self.assertEqual(changes(), {})
        m.block_pool._maybe_evict_cached_block(block=two[1])
        self.assertEqual(changes(), {"a": 4})

    def test_comes_back(self):
        manager, changes, _, tracker = followed()
        m = manager(blocks=4)
        m.run("a", prompt(("a", 12)))
        m.run("b", prompt(("b", 8)))
        self.assertEqual(changes(), {"a": 8})
        r = fake_vllm.request("again", prompt(("a", 12)))
        block = m.block_pool.free.pop()  # one of b's
        m.block_pool._maybe_evict_cached_block(block)
        m.block_pool.cache_full_blocks(r, [None, None, block], 2, 3, fake_vllm.BLOCK)
        changes()
        self.assertEqual(tracker.requests["a"].resident, 3)

    def test_waits_at_the_head(self):
        """A request that is looked up in each step is noted once, until something is different."""
        pool, manager = fake_vllm.make()
        ops = []
        install(pool, manager, fake_vllm.Utils, ops.append)
        m = manager(blocks=8)
        m.run("a", prompt(("s", 8)))
        m.run("b", prompt(("b", 8)))
        m.run("c", prompt(("s", 8), ("c", 4)))  # so that a's blocks are not the oldest
        waits = fake_vllm.request("waits", prompt(("s", 8), ("w", 8)))

        def noted():
            ops.clear()
            for _ in range(50):
                m.get_computed_blocks(waits)
            return [op[:2] for op in ops]

        self.assertEqual(noted(), [("seen", "waits")])
        self.assertEqual(noted(), [])
        blocks = {b.block_hash[0]: b for b in m.block_pool.free if b.block_hash}
        m.block_pool._maybe_evict_cached_block(blocks[fake_vllm.request("b", prompt(("b", 4))).block_hashes[0]])  # another's
        self.assertEqual(noted(), [])
        m.block_pool._maybe_evict_cached_block(blocks[waits.block_hashes[0]])  # its own: for the tracker it is gone
        self.assertEqual(noted(), [("seen", "waits")])
        m.block_pool.reset_prefix_cache()
        self.assertEqual(noted(), [("seen", "waits")])
        waits = fake_vllm.request("waits", prompt(("s", 8), ("w", 12)))  # it has answered some tokens, and was preempted
        self.assertEqual(noted(), [("seen", "waits")])
        waits = fake_vllm.request("waits", prompt(("s", 8), ("x", 12)))  # another prompt of the same length
        self.assertEqual(noted(), [("seen", "waits")])
        m.run("between", prompt(("s", 4)))
        self.assertEqual(noted(), [("seen", "waits")])

    def test_overflow(self):
        """What no room was for, or what an overflow made the tracker forget, is noted again in the next step."""
        pool, manager = fake_vllm.make()
        room, ops = 9, []

        def put(op):
            if len(ops) < room:
                ops.append(op[:2])
                return True
            return False

        self.assertIsNotNone(install(pool, manager, fake_vllm.Utils, put))
        m = manager(8)
        m.run("b", prompt(("b", 4)))
        other = next(b for b in m.block_pool.free if b.block_hash)
        waits = fake_vllm.request("waits", prompt(("s", 8)))
        for free, lost, want in ((0, False, []), (9, False, [("seen", "waits")]), (9, False, []), (0, True, []), (9, False, [("seen", "waits")])):
            room, ops = free, []
            m.get_computed_blocks(waits)
            if lost:
                m.block_pool._maybe_evict_cached_block(other)
            self.assertEqual([op for op in ops if op[0] == "seen"], want)

    def test_reset(self):
        manager, changes, _, _ = followed()
        m = manager(blocks=8)
        m.run("a", prompt(("a", 8)))
        self.assertFalse(m.block_pool.reset_prefix_cache(force=True))
        self.assertEqual(changes(), {})
        self.assertTrue(m.block_pool.reset_prefix_cache())
        self.assertEqual(changes(), {"a": 0})

    def test_not_followed(self):
        manager, changes, guard, tracker = followed(prefix="req-")
        m = manager(blocks=4)
        for rid in ("other", "HEALTH_CHECK_1", "cmpl-HEALTH_CHECK_2-0-0a1b2c3d"):
            m.run(rid, prompt((rid, 8)))
        m.run("req-short", prompt(("x", 3)))  # no full block
        m.run("chatcmpl-req-1-0a1b2c3d", prompt(("y", 8)))
        changes()
        self.assertEqual(list(tracker.requests), ["chatcmpl-req-1-0a1b2c3d"])
        # Blocks of other cache groups are none of the prompt's.
        block = m.block_pool.take(1)[0]
        m.block_pool.cache_full_blocks(fake_vllm.request("z", prompt(("y", 4))), [block], 0, 1, fake_vllm.BLOCK, kv_cache_group_id=1)
        m.block_pool._maybe_evict_cached_block(block)
        self.assertEqual(changes(), {})
        self.assertTrue(guard.on)

    def test_bounded(self):
        manager, changes, _, tracker = followed(most=5)
        m = manager(blocks=100)
        for i in range(20):
            m.run(f"r{i}", prompt(("s", 4), (f"x{i}", 4)))
        changes()
        self.assertEqual(list(tracker.requests), [f"r{i}" for i in range(15, 20)])
        self.assertEqual(len(tracker.owners), 6)

    def test_against_the_cache(self):
        """What was reported of each request is what a look at the cache shows, for random traffic."""
        rng = random.Random(1)
        for _ in range(20):
            manager, changes, guard, _ = followed()
            m = manager(blocks=16)
            known, prompts = {}, {}
            for i in range(80):
                tokens = prompt((f"s{rng.randrange(3)}", 4 * rng.randrange(1, 4)), (f"t{rng.randrange(6)}", 4 * rng.randrange(0, 4)), ("q", rng.randrange(4)))
                rid = f"r{i}"
                prompts[rid] = tokens
                m.run(rid, tokens)
                known[rid] = len(tokens) // 4 * 4
                known.update(changes())
            for rid, tokens in prompts.items():
                have = m.get_computed_blocks(fake_vllm.request("look", tokens))[1]
                # What was gone may be back by another request; never is more believed than is there.
                self.assertLessEqual(known[rid], have, rid)
            self.assertGreater(sum(known.values()), 0)
            self.assertTrue(guard.on)

    def test_unknown_release(self):
        quiet(self)
        pool, manager = fake_vllm.make()
        del pool._maybe_evict_cached_block
        run = manager.get_computed_blocks
        self.assertIsNone(install(pool, manager, fake_vllm.Utils, None))
        self.assertIs(manager.get_computed_blocks, run)

    def test_changed_release(self):
        """A request without what the plugin needs switches it off; the engine goes on."""
        quiet(self)
        manager, changes, guard, _ = followed()
        m = manager(blocks=8)
        with mock.patch.object(fake_vllm.Utils, "get_group_id", side_effect=AttributeError("renamed")):
            pool, manager = fake_vllm.make()
            guard = install(pool, manager, fake_vllm.Utils, None)
            m = manager(blocks=2)
            m.run("a", prompt(("a", 8)))
            m.run("b", prompt(("b", 8)))
        self.assertFalse(guard.on)
        self.assertEqual(m.run("b2", prompt(("b", 8))), 8)

    def test_twice(self):
        pool, manager = fake_vllm.make()
        self.assertIsNotNone(install(pool, manager, fake_vllm.Utils, None))
        wrapped = pool.cache_full_blocks
        self.assertIsNone(install(pool, manager, fake_vllm.Utils, None))
        self.assertIs(pool.cache_full_blocks, wrapped)


class TrackerTest(unittest.TestCase):
    def test_holes(self):
        """What is lost behind a hole changes nothing, and a filled hole counts up to the next one."""
        t = Tracker()
        t.apply(("seen", "a", ["h0", "h1", "h2", "h3"], 16))
        self.assertEqual(t.apply(("lost", "h1")), {"a": 16})
        self.assertEqual(t.apply(("lost", "h3")), {})
        self.assertEqual(t.apply(("stored", ["h1", "new"])), {})
        self.assertEqual(t.apply(("lost", "h2")), {"a": 32})
        self.assertEqual(t.apply(("seen", "a", ["h0"], 16)), {"a": None})  # the same name again
        self.assertEqual(t.apply(("lost", "h0")), {"a": 0})
        self.assertEqual((t.requests, t.owners), ({}, {}))


class WholeTest(unittest.TestCase):
    def test_posts(self):
        receiver = Receiver()
        self.addCleanup(receiver.close)
        pool, manager = fake_vllm.make()
        reporter = Reporter(receiver.url, Tracker())
        self.addCleanup(reporter.close)
        install(pool, manager, fake_vllm.Utils, reporter.put)
        m = manager(blocks=8)
        m.run("chatcmpl-req-a-0a1b2c3d", prompt(("a", 16)))
        m.run("chatcmpl-req-b-0a1b2c3d", prompt(("b", 24)))
        m.block_pool.reset_prefix_cache()
        gone, _ = receiver.wait(lambda gone, left: len(gone) == 2)
        self.assertEqual(gone, {"chatcmpl-req-a-0a1b2c3d", "chatcmpl-req-b-0a1b2c3d"})


if __name__ == "__main__":
    unittest.main()
