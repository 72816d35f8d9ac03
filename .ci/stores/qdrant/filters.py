"""Filters and queries: from the wire to the engine."""
import re

import qdrant_edge as qe

from errors import Gap
from values import id_in

PART = re.compile(r'"([^"]*)"|([^."]+)')  # of a path in a payload


def filter_in(message, shard):
    """The engine's filter, or None for one that everything fits."""
    if message is None or not (message.must or message.should or message.must_not):
        return None
    some = lambda conditions: [condition(c, shard) for c in conditions] or None
    return qe.Filter(must=some(message.must), should=some(message.should), must_not=some(message.must_not))


def condition(c, shard):
    kind = c.WhichOneof("condition_one_of")
    if kind == "field":
        return field(c.field, shard)
    if kind == "has_id":
        return qe.HasIdCondition({id_in(i) for i in c.has_id.has_id})
    if kind == "is_empty":
        return qe.IsEmptyCondition(c.is_empty.key)
    if kind == "is_null":
        return qe.IsNullCondition(c.is_null.key)
    if kind == "filter":
        return filter_in(c.filter, shard) or qe.Filter(must_not=[qe.HasIdCondition(set())])
    raise Gap("condition " + str(kind))


def field(f, shard):
    if f.HasField("match"):
        if f.match.WhichOneof("match_value") == "boolean":
            return qe.HasIdCondition(holding(shard, f.key, f.match.boolean))
        return qe.FieldCondition(f.key, match=match(f.match))
    if f.HasField("range"):
        bounds = {n: getattr(f.range, n) for n in ("gte", "gt", "lte", "lt") if f.range.HasField(n)}
        return qe.FieldCondition(f.key, range=qe.RangeFloat(**bounds))
    raise Gap("field condition")


def match(m):
    kind = m.WhichOneof("match_value")
    if kind in ("keyword", "integer"):
        return qe.MatchValue(getattr(m, kind))
    if kind == "text":
        return qe.MatchText(m.text)
    if kind == "phrase":
        return qe.MatchPhrase(m.phrase)
    if kind == "keywords":
        return qe.MatchAny(list(m.keywords.strings))
    if kind == "integers":
        return qe.MatchAny(list(m.integers.integers))
    if kind == "except_keywords":
        return qe.MatchExcept(list(m.except_keywords.strings))
    if kind == "except_integers":
        return qe.MatchExcept(list(m.except_integers.integers))
    raise Gap("match " + str(kind))


def holding(shard, path, wanted):
    """IDs of the points with this boolean. The engine can match one, its Python binding makes a number of it."""
    parts = [quoted or plain for quoted, plain in PART.findall(path)]
    found, offset = set(), None
    while True:
        points, offset = shard.scroll(qe.ScrollRequest(offset=offset, limit=1000, with_payload=True))
        found.update(p.id for p in points if wanted in booleans(p.payload, parts))
        if offset is None:
            return found


def booleans(payload, parts):
    for part in parts:
        payload = payload.get(part) if isinstance(payload, dict) else None
    values = payload if isinstance(payload, list) else [payload]
    return [v for v in values if isinstance(v, bool)]


def query_in(q, using):
    kind = q.WhichOneof("variant")
    if kind == "fusion":
        return qe.Fusion.Rrf(2) if q.fusion == 0 else qe.Fusion.Dbsf()
    if kind == "rrf":
        return qe.Fusion.Rrf(q.rrf.k if q.rrf.HasField("k") else 2)
    if kind != "nearest":
        raise Gap("query " + str(kind))
    kind = q.nearest.WhichOneof("variant")
    if kind == "dense":
        return qe.Query.Nearest(list(q.nearest.dense.data), using)
    if kind == "sparse":
        sparse = q.nearest.sparse
        return qe.Query.Nearest(qe.SparseVector(list(sparse.indices), list(sparse.values)), using)
    raise Gap("query by " + str(kind))
