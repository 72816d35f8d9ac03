"""What both engines' tests need: applying what was noted, and a log that stays quiet."""
import logging
import unittest


def changes(ops, tracker):
    """Applies the operations that were noted, and returns what became of requests."""
    out = {}
    for op in ops:
        out.update({rid: n for rid, n in tracker.apply(op).items() if n is not None})
    ops.clear()
    return out


def quiet(test: unittest.TestCase):
    logging.disable(logging.CRITICAL)
    test.addCleanup(logging.disable, logging.NOTSET)
