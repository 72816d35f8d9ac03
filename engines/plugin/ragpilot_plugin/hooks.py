"""What the hooks of every engine share: switching the plugin on, and looking at an engine's methods from outside."""
import functools
import inspect
import logging
import os

from .reporter import Reporter

log = logging.getLogger("ragpilot.plugin")


def start(log, hook, tracker):
    """Calls hook(put, prefix), which puts the hooks into the engine, if RAGPILOT_URL is set. put takes operations of the
    tracker's class."""
    url = os.environ.get("RAGPILOT_URL")
    if not url:
        return
    try:
        reporter = Reporter(url, tracker(int(os.environ.get("RAGPILOT_PLUGIN_REQUESTS", "20000"))),
                            os.environ.get("RAGPILOT_PLUGIN_KEY", ""))
        hook(reporter.put, os.environ.get("RAGPILOT_PLUGIN_PREFIX", ""))
    except Exception:
        log.exception("ragpilot: the plugin could not be installed; the engine goes on without it")


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
    """Makes cls.name call after(self, arguments, result, what before(self, arguments) returned). False if there is no such method.

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
