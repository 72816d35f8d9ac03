"""The vLLM plugin. It follows full blocks of the first cache group: models with one kind of attention."""
import logging

from .blocks import Tracker
from .hooks import Guard, start, trackable, wrap

log = logging.getLogger("vllm.ragpilot")  # so that what it says is shown


def register():
    """The entry point: vLLM calls it in each of its processes."""
    start(log, hook, Tracker)


def hook(put, prefix):
    from vllm.v1.core import block_pool, kv_cache_manager, kv_cache_utils
    install(block_pool.BlockPool, kv_cache_manager.KVCacheManager, kv_cache_utils, put, prefix)


def install(pool, manager, utils, put, prefix=""):
    """Wraps the methods of a block pool's and a cache manager's class; put takes operations of a Tracker. Returns the guard,
    or None if the classes are wrapped already or are not as they need to be."""
    if getattr(pool, "_ragpilot", False):
        return None
    missing = [f"{c.__name__}.{n}" for c, n in ((manager, "get_computed_blocks"), (pool, "_maybe_evict_cached_block"),
                                                (pool, "cache_full_blocks"), (pool, "reset_prefix_cache")) if not hasattr(c, n)]
    if missing:
        log.warning("ragpilot: this release of vLLM has no %s; evictions are not reported", ", ".join(missing))
        return None
    pool._ragpilot = True
    guard = Guard()
    seen = Seen(utils, put, prefix)
    for name in ("get_computed_blocks", "get_computed_blocks_for_connector"):
        wrap(guard, manager, name, seen.request)
    wrap(guard, pool, "_maybe_evict_cached_block", seen.evicted, before=seen.hashes)
    wrap(guard, pool, "cache_full_blocks", seen.stored)
    wrap(guard, pool, "reset_prefix_cache", seen.reset)
    log.info("ragpilot: evictions are reported")
    return guard


class Seen:
    """What the wrapped methods see. All of it runs in the scheduler's thread, and only notes."""

    def __init__(self, utils, put, prefix):
        self.put, self.prefix = put, prefix
        self.raw = getattr(utils, "get_block_hash", None) or (lambda h: h.block_hash)
        self.group = getattr(utils, "get_group_id", None) or (lambda h: h.group_id)
        self.last = None  # what names the prompt that was noted last, as long as it has lost nothing
        self.blocks = frozenset()  # the hashes of that prompt

    def _note(self, op):
        if self.put(op) is False:
            self.last = None  # the tracker is going to forget it with everything else

    def request(self, manager, arguments, _result, _before):
        request = arguments["request"]
        hashes = request.block_hashes
        if not hashes or not trackable(request.request_id, self.prefix):
            return
        last = (request.request_id, len(hashes), hashes[-1])  # a hash covers all tokens before it
        if last == self.last:
            return  # it waits at the head of the queue, and is looked up in each step
        self.last, self.blocks = last, frozenset(hashes)
        pool = manager.block_pool
        block = getattr(pool, "hash_block_size", 0) or getattr(manager, "block_size", 0)
        if not block:  # at most one block's tokens are not in a full one
            block = request.num_prompt_tokens // len(hashes)
        self._note(("seen", request.request_id, list(hashes), block))

    def hashes(self, pool, arguments):
        """Before an eviction: which hashes the block has."""
        block = arguments["block"]
        more = getattr(pool, "cached_block_hashes_by_block", {}).get(block.block_id, ())
        return [h for h in (block.block_hash, *more) if h is not None]

    def evicted(self, pool, _arguments, _result, hashes):
        for h in hashes or ():
            if self.group(h) == 0 and not self._cached(pool, h):
                self._lost(self.raw(h))

    def _lost(self, h):
        if h in self.blocks:
            self.last = None  # the tracker may have dropped it
        self._note(("lost", h))

    def _cached(self, pool, h):
        blocks = pool.cached_block_hash_to_block
        if hasattr(blocks, "get_one_block"):
            return blocks.get_one_block(h) is not None
        return bool(blocks.get(h))

    def stored(self, _pool, arguments, _result, _before):
        new = arguments["blocks"][arguments["num_cached_blocks"]:arguments["num_full_blocks"]]
        hashes = [self.raw(b.block_hash) for b in new if b.block_hash is not None and self.group(b.block_hash) == 0]
        if hashes:
            self._note(("stored", hashes))

    def reset(self, _pool, _arguments, result, _before):
        if result:
            self.last = None
            self._note(("reset",))
