"""What a call can fail with, beside what the engine says."""


class NotFound(Exception):
    """NOT_FOUND"""


class BadInput(Exception):
    """INVALID_ARGUMENT"""


class Gap(Exception):
    """UNIMPLEMENTED: something that this server does not cover."""
