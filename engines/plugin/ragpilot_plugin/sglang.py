"""The SGLang plugin. It follows the memory of the GPU: what moves to a lower tier is reported as lost. It needs a radix tree in
Python: SGLANG_UNIFIED_RADIX_TREE_CORE_BACKEND=python where a release has another one.
"""
import logging

from .hooks import Guard, start, trackable, wrap
from .nodes import Tracker

log = logging.getLogger("ragpilot.plugin")


def register():
    """The entry point: SGLang calls it in each of its processes."""
    start(log, hook, Tracker)


def hook(put, prefix):
    from sglang.srt.mem_cache import events
    install(events.KVCacheEventRecorder, caches(), put, prefix)


def caches():
    """The classes of radix caches that this release has."""
    out = []
    for module, name in (("radix_cache", "RadixCache"), ("unified_radix_cache", "UnifiedRadixCache")):
        try:
            out.append(getattr(__import__("sglang.srt.mem_cache." + module, fromlist=[name]), name))
        except (ImportError, AttributeError):
            pass
    return out


def install(recorder, classes, put, prefix=""):
    """Wraps the methods of the class that records cache events, and of cache classes; put takes operations of a Tracker.
    Returns the guard, or None if they are wrapped already or are not as they need to be."""
    if getattr(recorder, "_ragpilot", False):
        return None
    usable = [c for c in classes if hasattr(c, "checkpoint")]
    if not usable or not hasattr(recorder, "record_remove") or not hasattr(recorder, "record_all_cleared"):
        log.warning("ragpilot: this release of SGLang does not have what the plugin looks at; evictions are not reported")
        return None
    recorder._ragpilot = True
    guard = Guard()
    seen = Seen(put, prefix)
    for cache in usable:
        wrap(guard, cache, "checkpoint", seen.checkpoint)
    wrap(guard, recorder, "record_remove", seen.removed)
    wrap(guard, recorder, "record_all_cleared", seen.cleared)
    log.info("ragpilot: evictions are reported")
    return guard


class Seen:
    """What the wrapped methods see. All of it runs in the scheduler's thread, and only notes.

    The scheduler has a second radix tree, for what waits; no request ends in that one, so what happens to it is ignored."""

    def __init__(self, put, prefix):
        self.put, self.prefix = put, prefix

    def checkpoint(self, cache, arguments, _result, _before):
        """Some of a request's tokens are in the tree now, down to its last node."""
        request = arguments["req"]
        if not isinstance(request.rid, str) or not trackable(request.rid, self.prefix):
            return
        node = request.last_node
        if isinstance(node, int):
            node = cache.resolve_node_handle(node)
        if isinstance(node, int):
            raise TypeError("the nodes of this tree cannot be looked at")
        if not hasattr(node, "parent"):
            return  # the tokens are not in the tree: a session holds them
        tokens, n = 0, node
        while n.parent is not None:
            tokens += len(n.key)
            n = n.parent
        if tokens:  # 0: nothing of it is whole pages yet
            self.put(("ends", request.rid, id(recorder_of(cache)), name(node), tokens))

    def removed(self, _recorder, arguments, _result, _before):
        medium = arguments.get("medium")
        if medium is not None and getattr(medium, "value", medium) != "GPU":
            return
        node = arguments["node"]
        parent = node.parent
        up = None if parent is None or parent.parent is None else name(parent)
        self.put(("removed", name(node), up, len(node.key)))

    def cleared(self, recorder, _arguments, _result, _before):
        self.put(("reset", id(recorder)))


def recorder_of(cache):
    """The recorder that belongs to a cache, or to the core of its tree."""
    core = getattr(cache, "tree_core", cache)
    return core.kv_events


def name(node):
    """A node's own number: those of one class are never given twice."""
    return (type(node).__name__, node.id)
