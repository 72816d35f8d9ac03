"""vLLM plugin that tells ragpilot which requests lost cached blocks: POST {"request_ids": [...], "prefixes": [...]} to
$RAGPILOT_URL/evict. request_ids are requests of whose prompts nothing can be reused any more; prefixes are requests of
whose prompts only the first resident_tokens are still cached. IDs are the engine's own; ragpilot finds its ID in them.

Off unless RAGPILOT_URL is set. Further settings: RAGPILOT_PLUGIN_KEY (bearer token), RAGPILOT_PLUGIN_REQUESTS (how many
requests are followed, 20000), RAGPILOT_PLUGIN_PREFIX (only requests whose ID begins so are followed).

The scheduler's thread only notes what happens; following requests and posting is done by a thread of the plugin. Any error
of the plugin switches it off and leaves the engine alone. It follows full blocks of the first cache group: models with one
kind of attention.
"""
import logging
import os

from .hooks import Guard, trackable, wrap
from .reporter import Reporter
from .tracker import Tracker

log = logging.getLogger("vllm.ragpilot")  # so that what it says is shown


def register():
    """The entry point: vLLM calls it in each of its processes."""
    url = os.environ.get("RAGPILOT_URL")
    if not url:
        return
    try:
        from vllm.v1.core import block_pool, kv_cache_manager, kv_cache_utils
        reporter = Reporter(url, Tracker(int(os.environ.get("RAGPILOT_PLUGIN_REQUESTS", "20000"))),
                            os.environ.get("RAGPILOT_PLUGIN_KEY", ""))
        install(block_pool.BlockPool, kv_cache_manager.KVCacheManager, kv_cache_utils, reporter.put,
                os.environ.get("RAGPILOT_PLUGIN_PREFIX", ""))
    except Exception:
        log.exception("ragpilot: the plugin could not be installed; the engine goes on without it")


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
    """What the wrapped methods tell. All of it runs in the scheduler's thread, and only notes."""

    def __init__(self, utils, put, prefix):
        self.put, self.prefix = put, prefix
        self.raw = getattr(utils, "get_block_hash", None) or (lambda h: h.block_hash)
        self.group = getattr(utils, "get_group_id", None) or (lambda h: h.group_id)
        self.last = None  # what names the prompt that was noted last, as long as it has lost nothing
        self.blocks = frozenset()  # the hashes of that prompt

    def _tell(self, op):
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
        self._tell(("seen", request.request_id, list(hashes), block))

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
        self._tell(("lost", h))

    def _cached(self, pool, h):
        blocks = pool.cached_block_hash_to_block
        if hasattr(blocks, "get_one_block"):
            return blocks.get_one_block(h) is not None
        return bool(blocks.get(h))

    def stored(self, _pool, arguments, _result, _before):
        new = arguments["blocks"][arguments["num_cached_blocks"]:arguments["num_full_blocks"]]
        hashes = [self.raw(b.block_hash) for b in new if b.block_hash is not None and self.group(b.block_hash) == 0]
        if hashes:
            self._tell(("stored", hashes))

    def reset(self, _pool, _arguments, result, _before):
        if result:
            self.last = None
            self._tell(("reset",))
