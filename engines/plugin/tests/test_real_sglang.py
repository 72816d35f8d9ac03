"""The plugin in SGLang's own radix cache, without a model and without a GPU. Runs where SGLang can be imported."""
import array
import random
import unittest
import warnings
from types import SimpleNamespace

from ragpilot_plugin.sglang import install
from ragpilot_plugin.nodes import Tracker

from . import noted

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import sglang
        import torch
        from sglang.srt.mem_cache import events, radix_cache
        from sglang.srt.mem_cache.base_prefix_cache import EvictParams, MatchPrefixParams
        from sglang.srt.mem_cache.cache_init_params import CacheInitParams
        from sglang.srt.mem_cache.radix_cache import RadixCache, RadixKey
    why = ""
except Exception as e:  # a part of it that this machine cannot load
    why = f"SGLang cannot be imported: {type(e).__name__}: {e}"

PAGE = 16


class Slots:
    """A fake of the pools around the tree: which slots of memory a request uses."""

    device = "cpu"

    def __init__(self):
        self.req_to_token = torch.arange(4096).repeat(1, 1)

    def write(self, where, values):
        self.req_to_token[where] = values

    def free_segment(self, *_args, **_kwargs):
        pass


@unittest.skipIf(why, why)
class RealTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ops = []
        cls.guard = install(events.KVCacheEventRecorder, [RadixCache], cls.ops.append)

    def setUp(self):
        self.ops.clear()
        self.tracker = Tracker()
        slots = Slots()
        self.cache = RadixCache(CacheInitParams(disable=False, req_to_token_pool=slots, token_to_kv_pool_allocator=slots, page_size=PAGE))
        self.changes()

    def changes(self):
        return noted.changes(self.ops, self.tracker)

    def run_one(self, rid, tokens):
        """A whole request: a chunk of its prompt, the rest, the end."""
        key = RadixKey(array.array("q", tokens))
        found = self.cache.match_prefix(MatchPrefixParams(key=key))
        kv = SimpleNamespace(req_pool_idx=0, cache_protected_len=found.device_prefix_len, cache_inserted_len=0, swa_evict_floor=0)
        r = SimpleNamespace(rid=rid, kv=kv, extra_key=None, cache_salt=None, priority=0, origin_input_ids=array.array("q", tokens),
                            full_untruncated_fill_ids=array.array("q", tokens), last_node=found.last_device_node,
                            lock=self.cache.lock(found.last_device_node))
        for up_to in (len(tokens) // 2, len(tokens)):
            if up_to >= kv.cache_protected_len:
                self.cache.checkpoint(r, up_to=up_to)
        self.cache.unlock(r.lock)
        return found.device_prefix_len

    def have(self, tokens):
        return self.cache.match_prefix(MatchPrefixParams(key=RadixKey(array.array("q", tokens)))).device_prefix_len

    def test_version(self):
        print(f"SGLang {getattr(sglang, '__version__', '')}", end=" ", flush=True)
        self.assertIsNotNone(self.guard)

    def test_shrinks_then_goes(self):
        shared = list(range(64))
        self.run_one("a", shared + list(range(100, 138)))  # 6 pages
        self.assertEqual(self.run_one("b", shared + list(range(200, 232))), 64)
        self.assertEqual(self.changes(), {})
        self.cache.evict(EvictParams(num_tokens=1))
        self.assertEqual(self.changes(), {"a": 64})
        # The scheduler's second tree, with the same tokens.
        waiting = RadixCache.create_simulated(page_size=PAGE)
        waiting.insert(radix_cache.InsertParams(key=RadixKey(array.array("q", shared))))
        waiting.evict(EvictParams(num_tokens=1)) if waiting.token_to_kv_pool_allocator else waiting.reset()
        self.assertEqual(self.changes(), {})
        self.cache.evict(EvictParams(num_tokens=1000))
        self.assertEqual(self.changes(), {"a": 0, "b": 0})
        self.run_one("c", shared)
        self.cache.reset()
        self.assertEqual(self.changes(), {"c": 0})
        self.assertTrue(self.guard.on)

    def test_against_the_cache(self):
        rng = random.Random(3)
        known, prompts = {}, {}
        for i in range(200):
            tokens = []
            for part in range(rng.randrange(1, 4)):
                start = 1000 * rng.randrange(4) + 10_000 * part
                tokens += range(start, start + PAGE * rng.randrange(1, 4))
            tokens += range(50_000 + i, 50_000 + i + rng.randrange(PAGE))
            rid = f"r{i}"
            prompts[rid] = tokens
            self.run_one(rid, tokens)
            known[rid] = len(tokens) // PAGE * PAGE
            if rng.random() < 0.7:
                self.cache.evict(EvictParams(num_tokens=rng.randrange(1, 80)))
            known.update(self.changes())
        for rid, tokens in prompts.items():
            self.assertLessEqual(known[rid], self.have(tokens), rid)
        self.assertGreater(sum(n > 0 for n in known.values()), 5)
        self.assertGreater(sum(n == 0 for n in known.values()), 50)
        self.assertTrue(self.guard.on)


if __name__ == "__main__":
    unittest.main()
