"""Which requests lose which part of their prompts when nodes leave a radix tree."""


class Tracker:
    """Follows the nodes where requests' tokens end. Operations are tuples:

    ("ends", request id, tree, node, tokens from the root to the node's end)
    ("removed", node, its parent or None if that is the root, tokens of the node)
    ("reset", tree)

    Trees and nodes are named by anything that can be a key. A request stands at the deepest node of its tokens; when that is
    removed, always a leaf, it moves up. It belongs to one thread. Memory is bounded by most requests.
    """

    def __init__(self, most=20_000):
        self.most = most
        self.requests = {}  # request id -> [tree, node, resident tokens]; oldest first
        self.at = {}  # node -> request ids

    def apply(self, op):
        return getattr(self, "_" + op[0])(*op[1:])

    def lose(self):
        gone = list(self.requests)
        self.requests, self.at = {}, {}
        return gone

    def _ends(self, rid, tree, node, tokens):
        self._drop(rid)
        self.requests[rid] = [tree, node, tokens]
        self.at.setdefault(node, {})[rid] = True
        while len(self.requests) > self.most:
            self._drop(next(iter(self.requests)))
        return {rid: None}  # whatever was found of it before

    def _removed(self, node, parent, tokens):
        here = self.at.pop(node, None)
        if not here:
            return {}
        changes = {}
        for rid in here:
            request = self.requests[rid]
            request[2] = max(request[2] - tokens, 0)
            changes[rid] = request[2]
            if parent is None or request[2] == 0:
                changes[rid] = 0
                del self.requests[rid]
            else:
                request[1] = parent
        if parent is not None:
            self.at.setdefault(parent, {}).update((rid, True) for rid in here if rid in self.requests)
            if not self.at[parent]:
                del self.at[parent]
        return changes

    def _reset(self, tree):
        gone = [rid for rid, request in self.requests.items() if request[0] == tree]
        for rid in gone:
            self._drop(rid)
        return dict.fromkeys(gone, 0)

    def _drop(self, rid):
        request = self.requests.pop(rid, None)
        if request is None:
            return
        here = self.at.get(request[1])
        if here is not None:
            here.pop(rid, None)
            if not here:
                del self.at[request[1]]
