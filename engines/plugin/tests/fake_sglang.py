"""A fake of the parts of SGLang that the plugin looks at: a radix cache whose tree splits and loses leaves by least recent
use, and the recorder of its events. Made after SGLang 0.5.23. No model, no GPU."""
import enum
from types import SimpleNamespace

PAGE = 4


class Medium(str, enum.Enum):
    GPU = "GPU"
    CPU = "CPU_PINNED"


def make():
    """Fresh classes, because the plugin changes them."""

    class Recorder:
        def record_remove(self, node, medium=None):
            pass

        def record_all_cleared(self):
            pass

    class Node:
        counter = 0

        def __init__(self, parent, key):
            self.id, self.parent, self.key, self.children, self.used = Node.counter, parent, key, {}, 0
            Node.counter += 1

    class RadixCache:
        def __init__(self):
            self.kv_events = Recorder()
            self.clock = 0
            self.reset()

        def reset(self):
            self.root = Node(None, [])
            self.kv_events.record_all_cleared()

        def insert(self, tokens, split_at=0):
            """Returns the node where the whole pages of the tokens end."""
            self.clock += 1
            tokens, node, depth = tokens[:len(tokens) // PAGE * PAGE], self.root, 0
            while tokens:
                child = node.children.get(tuple(tokens[:PAGE]))
                if child is None:
                    child = Node(node, tokens)
                    node.children[tuple(tokens[:PAGE])] = child
                same = 0
                while same < min(len(child.key), len(tokens)) and child.key[same] == tokens[same]:
                    same += 1
                same = same // PAGE * PAGE
                if same < len(child.key):
                    child = self.split(child, same)
                node, tokens = child, tokens[same:]
                node.used = self.clock
            return node

        def split(self, child, n):
            upper = Node(child.parent, child.key[:n])
            upper.used = child.used
            upper.parent.children[tuple(upper.key[:PAGE])] = upper
            upper.children = {tuple(child.key[n:n + PAGE]): child}
            child.parent, child.key = upper, child.key[n:]
            return upper

        def checkpoint(self, req, *, up_to):
            req.last_node = self.insert(req.tokens[:up_to])

        def leaves(self):
            out, todo = [], [self.root]
            while todo:
                n = todo.pop()
                todo.extend(n.children.values())
                if not n.children and n is not self.root:
                    out.append(n)
            return sorted(out, key=lambda n: n.used)

        def evict(self, tokens, medium=None):
            done = 0
            while done < tokens and self.leaves():
                leaf = self.leaves()[0]
                done += len(leaf.key)
                del leaf.parent.children[tuple(leaf.key[:PAGE])]
                self.kv_events.record_remove(leaf, medium=medium)

        def have(self, tokens):
            """How many of the tokens a request would find."""
            tokens, node, n = tokens[:len(tokens) // PAGE * PAGE], self.root, 0
            while tokens:
                child = node.children.get(tuple(tokens[:PAGE]))
                if child is None:
                    return n
                same = 0
                while same < min(len(child.key), len(tokens)) and child.key[same] == tokens[same]:
                    same += 1
                same = same // PAGE * PAGE
                n += same
                if same < len(child.key):
                    return n
                node, tokens = child, tokens[same:]
            return n

        def run(self, rid, tokens):
            r = SimpleNamespace(rid=rid, tokens=tokens, last_node=self.root)
            self.checkpoint(r, up_to=len(tokens) // 2)  # a chunk of the prompt
            self.checkpoint(r, up_to=len(tokens))

    return Recorder, RadixCache


class UnifiedCache:
    """A cache whose requests hold numbers of nodes, which its core can or cannot look up."""

    def __init__(self, core, readable):
        self.tree_core, self.readable = core, readable

    def resolve_node_handle(self, handle):
        return self.readable.get(handle, handle)

    def checkpoint(self, req, *, up_to, **_):
        req.last_node = 7
