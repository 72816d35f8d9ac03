"""Values, IDs and vectors: from the wire to the engine and back."""
import uuid

import qdrant_edge as qe
from qdrant_client import grpc as g

from errors import BadInput, Gap


def to_python(value):
    kind = value.WhichOneof("kind")
    if kind in (None, "null_value"):
        return None
    if kind == "struct_value":
        return {k: to_python(v) for k, v in value.struct_value.fields.items()}
    if kind == "list_value":
        return [to_python(v) for v in value.list_value.values]
    return getattr(value, kind)


def to_value(x):
    if x is None:
        return g.Value(null_value=0)
    for kind, name in ((bool, "bool_value"), (int, "integer_value"), (float, "double_value"), (str, "string_value")):
        if isinstance(x, kind):
            return g.Value(**{name: x})
    if isinstance(x, dict):
        return g.Value(struct_value=g.Struct(fields={k: to_value(v) for k, v in x.items()}))
    return g.Value(list_value=g.ListValue(values=[to_value(v) for v in x]))


def payload_in(fields):
    return {k: to_python(v) for k, v in fields.items()}


def payload_out(payload):
    return {k: to_value(v) for k, v in (payload or {}).items()}


def id_in(point_id):
    if point_id.WhichOneof("point_id_options") == "num":
        return point_id.num
    try:
        return uuid.UUID(point_id.uuid)
    except ValueError:
        raise BadInput("Unable to parse UUID: %s" % point_id.uuid) from None


def id_out(x):
    return g.PointId(num=x) if isinstance(x, int) else g.PointId(uuid=str(x))


def vector_in(vector):
    """One vector: the fields of a kind first, the older flat field after."""
    kind = vector.WhichOneof("vector")
    if kind == "dense":
        return list(vector.dense.data)
    if kind == "sparse":
        return qe.SparseVector(list(vector.sparse.indices), list(vector.sparse.values))
    if kind is not None:
        raise Gap("vector of kind " + kind)
    if vector.HasField("indices"):
        return qe.SparseVector(list(vector.indices.data), list(vector.data))
    return list(vector.data)


def vectors_in(vectors):
    if vectors.WhichOneof("vectors_options") == "vectors":
        return {name: vector_in(v) for name, v in vectors.vectors.vectors.items()}
    return vector_in(vectors.vector)


def vectors_out(vector):
    """The vectors of a point that was asked for with them: one without a name, or dense ones with names."""
    if vector is None or vector == {}:
        return None
    dense = lambda v: g.VectorOutput(dense=g.DenseVector(data=v))
    if not isinstance(vector, dict):
        return g.VectorsOutput(vector=dense(vector))
    if set(vector) == {""}:
        return g.VectorsOutput(vector=dense(vector[""]))
    if not all(isinstance(v, list) for v in vector.values()):
        raise Gap("giving sparse vectors back")
    return g.VectorsOutput(vectors=g.NamedVectorsOutput(vectors={name: dense(v) for name, v in vector.items()}))
