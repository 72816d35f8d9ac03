"""The entry points, where the engines are not installed."""
import os
import sys
import unittest
from unittest import mock

from ragpilot_plugin import sglang, vllm

from .noted import quiet

ENTRY_POINTS = {"vllm": vllm.register, "sglang": sglang.register}


class RegisterTest(unittest.TestCase):
    def test_off_unless_configured(self):
        for engine, register in ENTRY_POINTS.items():
            with self.subTest(engine), mock.patch.dict(os.environ, clear=True), mock.patch.dict(sys.modules, {engine: None}):
                register()  # does not import the engine

    def test_no_engine(self):
        quiet(self)
        for engine, register in ENTRY_POINTS.items():
            with self.subTest(engine), mock.patch.dict(os.environ, {"RAGPILOT_URL": "http://127.0.0.1:1"}), \
                    mock.patch.dict(sys.modules, {engine: None}):
                register()


if __name__ == "__main__":
    unittest.main()
