"""The plugin in vLLM's own cache manager and block pool, without a model and without a GPU. Runs where vLLM is installed."""
import inspect
import os
import random
import unittest

from ragpilot_plugin.vllm import install
from ragpilot_plugin.blocks import Tracker

from . import noted

try:
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    import torch
    import vllm
    from vllm.sampling_params import SamplingParams
    from vllm.utils.hashing import sha256
    from vllm.v1.core import block_pool, kv_cache_manager, kv_cache_utils
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
    from vllm.v1.request import Request
    why = ""
except ImportError as e:
    why = f"vLLM cannot be imported: {e}"

BLOCK = 16


def classes():
    """Copies of vLLM's own classes for the plugin to change."""
    pool = type("BlockPool", (block_pool.BlockPool,), {})
    manager = type("KVCacheManager", (kv_cache_manager.KVCacheManager,), {})
    return pool, manager


def build(pool, manager, blocks):
    spec = FullAttentionSpec(block_size=BLOCK, num_kv_heads=1, head_size=1, dtype=torch.float32)
    config = KVCacheConfig(num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)])
    known = inspect.signature(kv_cache_manager.KVCacheManager.__init__).parameters
    more = {"scheduler_block_size": BLOCK, "hash_block_size": BLOCK, "enable_caching": True}
    m = manager(config, max_model_len=8192, **{k: v for k, v in more.items() if k in known})
    m.block_pool.__class__ = pool
    return m


@unittest.skipIf(why, why)
class RealTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kv_cache_utils.init_none_hash(sha256)
        cls.hasher = staticmethod(kv_cache_utils.get_request_block_hasher(BLOCK, sha256))

    def setUp(self):
        self.pool, self.manager = classes()
        self.ops, self.tracker = [], Tracker()
        self.guard = install(self.pool, self.manager, kv_cache_utils, self.ops.append)

    def changes(self):
        return noted.changes(self.ops, self.tracker)

    def request(self, rid, tokens):
        params = SamplingParams(max_tokens=1)
        params.update_from_generation_config({}, 1)
        return Request(request_id=rid, prompt_token_ids=tokens, sampling_params=params, pooling_params=None, block_hasher=self.hasher)

    def run_one(self, m, rid, tokens):
        """A whole request, as the scheduler runs it. Returns its cached tokens."""
        r = self.request(rid, tokens)
        hit, cached = m.get_computed_blocks(r)[:2]
        self.assertIsNotNone(m.allocate_slots(r, len(tokens) - cached, cached, hit))
        m.free(r)
        return cached

    def test_versions(self):
        print(f"vLLM {vllm.__version__}", end=" ", flush=True)
        self.assertIsNotNone(self.guard)

    def test_shrinks_then_goes(self):
        m = build(self.pool, self.manager, 9)  # one of them is never used
        a = list(range(66))
        self.assertEqual(self.run_one(m, "cmpl-a-0-0a1b2c3d", a), 0)
        self.assertEqual(self.run_one(m, "again", a), 64)
        self.run_one(m, "b", list(range(1000, 1096)))
        self.assertEqual(self.changes(), {"cmpl-a-0-0a1b2c3d": 32, "again": 32})
        self.run_one(m, "c", list(range(2000, 2100)))
        changes = self.changes()
        self.assertEqual((changes["cmpl-a-0-0a1b2c3d"], changes["again"]), (0, 0))
        self.assertTrue(m.reset_prefix_cache())
        self.assertEqual(self.changes(), dict.fromkeys([rid for rid, n in (("b", 1), ("c", 1)) if changes.get(rid) != 0], 0))
        self.assertTrue(self.guard.on)

    def test_against_the_cache(self):
        rng = random.Random(2)
        m = build(self.pool, self.manager, 33)
        known, prompts = {}, {}
        for i in range(300):
            tokens = []
            for part in range(rng.randrange(1, 4)):
                start = 1000 * rng.randrange(4) + 10_000 * part
                tokens += range(start, start + BLOCK * rng.randrange(1, 4))
            tokens += range(50_000 + i, 50_000 + i + rng.randrange(1, BLOCK))
            rid = f"r{i}"
            prompts[rid] = tokens
            self.run_one(m, rid, tokens)
            known[rid] = len(tokens) // BLOCK * BLOCK
            known.update(self.changes())
        for rid, tokens in prompts.items():
            have = m.get_computed_blocks(self.request("look", tokens))[1]
            self.assertLessEqual(known[rid], have, rid)
        self.assertTrue(self.guard.on)
        self.assertGreater(sum(n > 0 for n in known.values()), 5)
        self.assertGreater(sum(n == 0 for n in known.values()), 50)


if __name__ == "__main__":
    unittest.main()
