"""Looks at an engine's methods from outside. Both engine plugins have this file; it is the same in both."""
import functools
import inspect
import logging

log = logging.getLogger("ragpilot.plugin")


class Guard:
    """Runs the plugin's own code. Its first error switches the whole plugin off; none reaches the engine."""

    def __init__(self):
        self.on = True

    def run(self, call, *args):
        if not self.on:
            return None
        try:
            return call(*args)
        except Exception:
            self.on = False
            log.exception("ragpilot: the plugin has switched itself off; the engine goes on without it")
            return None


def wrap(guard, cls, name, after, before=None):
    """Makes cls.name tell after(self, arguments, result, what before(self, arguments) returned). False if there is no such method.

    Arguments are a dict by the names that the method gives them, so that added parameters do no harm. The method itself
    gets them as they came.
    """
    original = inspect.getattr_static(cls, name, None)
    if not inspect.isfunction(original):
        return False
    signature = inspect.signature(original)

    def named(self, args, kwargs):
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        return bound.arguments

    @functools.wraps(original)
    def wrapper(self, *args, **kwargs):
        seen = None
        if guard.on and before is not None:
            seen = guard.run(lambda: before(self, named(self, args, kwargs)))
        result = original(self, *args, **kwargs)
        if guard.on:
            guard.run(lambda: after(self, named(self, args, kwargs), result, seen))
        return result

    setattr(cls, name, wrapper)
    return True


def trackable(rid, prefix):
    """Whether a request is one to follow: not an engine's request to itself, and of the wanted prefix."""
    for front in ("chatcmpl-", "cmpl-", "batch-"):
        if rid.startswith(front):
            rid = rid[len(front):]
            break
    return bool(rid) and not rid.startswith("HEALTH_CHECK") and rid.startswith(prefix)
