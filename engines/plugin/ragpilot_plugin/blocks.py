"""Which requests lose which part of their prompts when blocks leave the cache."""


class Tracker:
    """Follows the blocks of requests. Operations are tuples:

    ("seen", request id, [block hashes of its prompt, in order], tokens of a block)
    ("lost", block hash)        no block with this hash is left
    ("stored", [block hashes])  there is one of each
    ("reset",)                  the cache is empty

    It belongs to one thread. Memory is bounded by most requests.
    """

    def __init__(self, most=20_000):
        self.most = most
        self.requests = {}  # request id -> Chain; oldest first
        self.owners = {}  # block hash -> request ids

    def apply(self, op):
        return getattr(self, "_" + op[0])(*op[1:])

    def lose(self):
        gone = list(self.requests)
        self.requests, self.owners = {}, {}
        return gone

    def _seen(self, rid, hashes, block):
        self._drop(rid)
        if not hashes:
            return {}
        self.requests[rid] = Chain(hashes, block)
        for h in hashes:
            self.owners.setdefault(h, {})[rid] = True
        while len(self.requests) > self.most:
            self._drop(next(iter(self.requests)))
        return {rid: None}  # whatever was found of an earlier one of this name

    def _lost(self, h):
        changes = {}
        for rid in list(self.owners.get(h, ())):
            chain = self.requests[rid]
            chain.missing.add(h)
            if chain.place[h] >= chain.resident:
                continue  # behind what was lost before
            chain.resident = chain.place[h]
            changes[rid] = chain.resident * chain.block
            if chain.resident == 0:  # blocks behind the first may be there, but cannot be reused
                self._drop(rid)
        return changes

    def _stored(self, hashes):
        for h in hashes:
            for rid in self.owners.get(h, ()):
                chain = self.requests[rid]
                if h in chain.missing:
                    chain.missing.discard(h)
                    chain.extend()
        return {}

    def _reset(self):
        return dict.fromkeys(self.lose(), 0)

    def _drop(self, rid):
        chain = self.requests.pop(rid, None)
        if chain is None:
            return
        for h in chain.place:
            owners = self.owners.get(h)
            if owners is not None:
                owners.pop(rid, None)
                if not owners:
                    del self.owners[h]


class Chain:
    """The blocks of one request's prompt."""

    __slots__ = ("place", "hashes", "block", "missing", "resident")

    def __init__(self, hashes, block):
        self.hashes = hashes
        self.place = {h: i for i, h in enumerate(hashes)}
        self.block = block  # tokens
        self.missing = set()
        self.resident = len(hashes)  # blocks from the beginning, as last reported

    def extend(self):
        n = self.resident
        while n < len(self.hashes) and self.hashes[n] not in self.missing:
            n += 1
        self.resident = n
