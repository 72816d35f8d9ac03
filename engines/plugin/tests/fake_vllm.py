"""A fake of the parts of vLLM that the plugin looks at: block pool, cache manager, hashes. It keeps blocks by least recent
use and gives up the last block of a request first, as vLLM 0.32.0 does. No model, no GPU."""
import collections
import itertools
from types import SimpleNamespace

BLOCK = 4


class Utils:
    """kv_cache_utils: a hash in the map is the block's hash and its group."""

    get_block_hash = staticmethod(lambda h: h[0])
    get_group_id = staticmethod(lambda h: h[1])


class BlockMap:
    def __init__(self):
        self.blocks = collections.defaultdict(dict)

    def get_one_block(self, h):
        return next(iter(self.blocks.get(h, {}).values()), None)


def make():
    """Fresh classes, because the plugin changes them."""

    class BlockPool:
        def __init__(self, blocks):
            self.hash_block_size = BLOCK
            self.free = collections.deque(SimpleNamespace(block_id=i, block_hash=None) for i in range(blocks))
            self.cached_block_hash_to_block = BlockMap()
            self.cached_block_hashes_by_block = {}

        def take(self, n):
            out = [self.free.popleft() for _ in range(n)]
            for b in out:
                self._maybe_evict_cached_block(b)
            return out

        def cache_full_blocks(self, request, blocks, num_cached_blocks, num_full_blocks, block_size, kv_cache_group_id=0, block_mask=None):
            for block, h in zip(blocks[num_cached_blocks:num_full_blocks], request.block_hashes[num_cached_blocks:]):
                block.block_hash = (h, kv_cache_group_id)
                self.cached_block_hash_to_block.blocks[block.block_hash][block.block_id] = block

        def _maybe_evict_cached_block(self, block):
            if block.block_hash is None:
                return False
            copies = self.cached_block_hash_to_block.blocks[block.block_hash]
            del copies[block.block_id]
            block.block_hash = None
            return True

        def reset_prefix_cache(self, force=False):
            if force:
                return False
            self.cached_block_hash_to_block = BlockMap()
            for b in self.free:
                b.block_hash = None
            return True

    class KVCacheManager:
        def __init__(self, blocks):
            self.block_pool = BlockPool(blocks)

        def get_computed_blocks(self, request):
            hit = []
            for h in request.block_hashes:
                block = self.block_pool.cached_block_hash_to_block.get_one_block((h, 0))
                if block is None:
                    break
                hit.append(block)
            return hit, len(hit) * BLOCK, 0

        def run(self, rid, tokens):
            """A whole request: look up, compute, store, free, last block first."""
            r = request(rid, tokens)
            hit, _, _ = self.get_computed_blocks(r)
            for b in hit:
                self.block_pool.free.remove(b)
            new = self.block_pool.take(len(r.block_hashes) - len(hit))
            self.block_pool.cache_full_blocks(r, hit + new, len(hit), len(r.block_hashes), block_size=BLOCK, kv_cache_group_id=0)
            for b in reversed(hit + new):
                self.block_pool.free.append(b)
            return len(hit) * BLOCK

    return BlockPool, KVCacheManager


def request(rid, tokens):
    chain, hashes = 0, []
    for i in range(0, len(tokens) - BLOCK + 1, BLOCK):
        chain = hash((chain, tuple(tokens[i:i + BLOCK])))
        hashes.append(chain.to_bytes(8, "big", signed=True))
    return SimpleNamespace(request_id=rid, block_hashes=hashes, num_prompt_tokens=len(tokens))


def prompt(*parts):
    """Tokens: each part is a letter and a length."""
    return list(itertools.chain.from_iterable([f"{name}{i}" for i in range(n)] for name, n in parts))
