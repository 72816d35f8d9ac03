#!/usr/bin/env python3
"""Qdrant's engine (qdrant-edge, in this process) behind Qdrant's published gRPC services, for tests.

usage: server.py PORT FOLDER

Segments, filters, sparse vectors and fusion are Qdrant's own. The wire layer is ours and covers what the tests need;
anything else answers UNIMPLEMENTED, so that a gap is seen. What it cannot show: sharding, replication, consistency,
keys, TLS, limits, and the server's own error texts. It is no server for data.
"""
import os
import shutil
import sys
import threading
import time
import uuid
from concurrent import futures

import grpc
import qdrant_edge as qe
from qdrant_client import grpc as g
from qdrant_client.grpc import collections_service_pb2_grpc as collections_service
from qdrant_client.grpc import points_service_pb2_grpc as points_service
from qdrant_client.grpc import qdrant_pb2, qdrant_pb2_grpc

from errors import BadInput, Gap, NotFound
from filters import filter_in, query_in
from values import id_in, id_out, payload_in, payload_out, vectors_in, vectors_out

VERSION = "1.17.0"  # of the services
MAX_MESSAGE = 64 << 20
DISTANCES = {1: qe.Distance.Cosine, 2: qe.Distance.Euclid, 3: qe.Distance.Dot, 4: qe.Distance.Manhattan}


class Collection:
    def __init__(self, folder, vectors, sparse):
        self.vectors, self.folder = vectors, folder
        os.makedirs(folder)
        params = lambda p: qe.EdgeVectorParams(size=p.size, distance=DISTANCES[p.distance])
        dense = params(vectors[""]) if "" in vectors else {name: params(p) for name, p in vectors.items()}
        words = {name: qe.EdgeSparseVectorParams(modifier=qe.Modifier.Idf if p.modifier == 1 else None) for name, p in sparse.items()}
        self.shard = qe.EdgeShard.create(folder, qe.EdgeConfig(vectors=dense, sparse_vectors=words or None))
        self.lock, self.operations, self.indexes = threading.Lock(), 0, {}

    def update(self, operation):
        with self.lock:
            self.shard.update(operation)
            self.operations += 1
            return g.PointsOperationResponse(result=g.UpdateResult(operation_id=self.operations, status=2))


class Store:
    def __init__(self, folder):
        self.folder, self.collections, self.lock = folder, {}, threading.Lock()

    def get(self, name):
        with self.lock:
            if name not in self.collections:
                raise NotFound("Not found: Collection `%s` doesn't exist!" % name)
            return self.collections[name]

    def create(self, name, vectors, sparse):
        with self.lock:
            if name in self.collections:
                raise BadInput("Wrong input: Collection `%s` already exists!" % name)
            self.collections[name] = Collection(os.path.join(self.folder, uuid.uuid4().hex), vectors, sparse)

    def drop(self, name):
        with self.lock:
            collection = self.collections.pop(name, None)
        if collection is not None:
            collection.shard.close()
            shutil.rmtree(collection.folder, ignore_errors=True)
        return collection is not None


def answer(method):
    """Gives errors their codes, and answers their time."""

    def run(self, request, context):
        start = time.time()
        try:
            response = method(self, request)
        except NotFound as e:
            context.abort(grpc.StatusCode.NOT_FOUND, str(e))
        except Gap as e:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "test server: %s is not covered" % e)
        except BadInput as e:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(e))
        except Exception as e:  # the engine says why: a wrong length, an unknown name
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Wrong input: %s" % e)
        if "time" in response.DESCRIPTOR.fields_by_name:
            response.time = time.time() - start
        return response

    return run


def optional(message, name):
    return getattr(message, name) if message.HasField(name) else None


def with_vectors(message):
    selector = optional(message, "with_vectors")
    if selector is not None and selector.WhichOneof("selector_options") != "enable":
        raise Gap("vectors selector")
    return selector is not None and selector.enable


def payload_selector(message):
    selector = optional(message, "with_payload")
    kind = selector and selector.WhichOneof("selector_options")
    if kind == "include":
        return list(selector.include.fields)
    if kind == "exclude":
        raise Gap("payload selector")
    return bool(kind and selector.enable)


def retrieved(p):
    return g.RetrievedPoint(id=id_out(p.id), payload=payload_out(p.payload), vectors=vectors_out(p.vector))


class Health(qdrant_pb2_grpc.QdrantServicer):
    @answer
    def HealthCheck(self, request):
        return qdrant_pb2.HealthCheckReply(title="qdrant - vector search engine", version=VERSION)


class Collections(collections_service.CollectionsServicer):
    def __init__(self, store):
        self.store = store

    @answer
    def Create(self, r):
        config = r.vectors_config
        kind = config.WhichOneof("config")
        vectors = {"": config.params} if kind == "params" else dict(config.params_map.map) if kind else {}
        self.store.create(r.collection_name, vectors, dict(r.sparse_vectors_config.map))
        return g.CollectionOperationResponse(result=True)

    @answer
    def Delete(self, r):
        return g.CollectionOperationResponse(result=self.store.drop(r.collection_name))

    @answer
    def CollectionExists(self, r):
        return g.CollectionExistsResponse(result=g.CollectionExists(exists=r.collection_name in self.store.collections))

    @answer
    def List(self, r):
        names = sorted(self.store.collections)
        return g.ListCollectionsResponse(collections=[g.CollectionDescription(name=n) for n in names])

    @answer
    def Get(self, r):
        collection = self.store.get(r.collection_name)
        vectors = g.VectorsConfig(params_map=g.VectorParamsMap(map=collection.vectors))
        if "" in collection.vectors:
            vectors = g.VectorsConfig(params=collection.vectors[""])
        params = g.CollectionParams(shard_number=1, vectors_config=vectors)
        count = collection.shard.count(qe.CountRequest(exact=True))
        info = g.CollectionInfo(status=1, points_count=count, segments_count=1,
                                config=g.CollectionConfig(params=params), payload_schema=collection.indexes)
        return g.GetCollectionInfoResponse(result=info)


class Points(points_service.PointsServicer):
    def __init__(self, store):
        self.store = store

    @answer
    def Upsert(self, r):
        collection = self.store.get(r.collection_name)
        points = [qe.Point(id_in(p.id), vectors_in(p.vectors), payload_in(p.payload)) for p in r.points]
        condition = filter_in(optional(r, "update_filter"), collection.shard)
        return collection.update(qe.UpdateOperation.upsert_points(points, condition))

    @answer
    def SetPayload(self, r):
        collection, payload = self.store.get(r.collection_name), payload_in(r.payload)
        if r.points_selector.WhichOneof("points_selector_one_of") == "points":
            ids = [id_in(i) for i in r.points_selector.points.ids]
            return collection.update(qe.UpdateOperation.set_payload(ids, payload, optional(r, "key")))
        which = filter_in(r.points_selector.filter, collection.shard)
        return collection.update(qe.UpdateOperation.set_payload_by_filter(which, payload, optional(r, "key")))

    @answer
    def DeletePayload(self, r):
        collection, keys = self.store.get(r.collection_name), list(r.keys)
        if r.points_selector.WhichOneof("points_selector_one_of") == "points":
            ids = [id_in(i) for i in r.points_selector.points.ids]
            return collection.update(qe.UpdateOperation.delete_payload(ids, keys))
        which = filter_in(r.points_selector.filter, collection.shard)
        return collection.update(qe.UpdateOperation.delete_payload_by_filter(which, keys))

    @answer
    def Delete(self, r):
        collection = self.store.get(r.collection_name)
        if r.points.WhichOneof("points_selector_one_of") == "points":
            operation = qe.UpdateOperation.delete_points([id_in(i) for i in r.points.points.ids])
        else:
            operation = qe.UpdateOperation.delete_points_by_filter(filter_in(r.points.filter, collection.shard))
        return collection.update(operation)

    @answer
    def CreateFieldIndex(self, r):
        # Indexes change how long a search takes, not what it finds: they are only listed.
        self.store.get(r.collection_name).indexes[r.field_name] = g.PayloadSchemaInfo(data_type=r.field_type + 1)
        return g.PointsOperationResponse(result=g.UpdateResult(status=2))

    @answer
    def Get(self, r):
        ids = {id_in(i) for i in r.ids}
        points, _ = self.store.get(r.collection_name).shard.scroll(qe.ScrollRequest(
            limit=len(ids), filter=qe.Filter(must=[qe.HasIdCondition(ids)]),
            with_payload=payload_selector(r), with_vector=with_vectors(r)))
        return g.GetResponse(result=[retrieved(p) for p in points])

    @answer
    def Scroll(self, r):
        shard = self.store.get(r.collection_name).shard
        points, following = shard.scroll(qe.ScrollRequest(
            offset=id_in(r.offset) if r.HasField("offset") else None, limit=optional(r, "limit") or 10,
            filter=filter_in(optional(r, "filter"), shard), with_payload=payload_selector(r), with_vector=with_vectors(r)))
        return g.ScrollResponse(
            result=[retrieved(p) for p in points],
            next_page_offset=None if following is None else id_out(following))

    @answer
    def Count(self, r):
        shard = self.store.get(r.collection_name).shard
        count = shard.count(qe.CountRequest(exact=True, filter=filter_in(optional(r, "filter"), shard)))
        return g.CountResponse(result=g.CountResult(count=count))

    @answer
    def Query(self, r):
        return g.QueryResponse(result=self.query(r))

    @answer
    def QueryBatch(self, r):
        return g.QueryBatchResponse(result=[g.BatchResult(result=self.query(q)) for q in r.query_points])

    def query(self, r):
        if with_vectors(r):
            raise Gap("giving the vectors of hits back")
        shard = self.store.get(r.collection_name).shard
        points = shard.query(qe.QueryRequest(
            limit=optional(r, "limit") or 10, offset=optional(r, "offset"),
            query=query_in(r.query, optional(r, "using")) if r.HasField("query") else None,
            prefetches=[self.prefetch(p, shard) for p in r.prefetch] or None,
            filter=filter_in(optional(r, "filter"), shard), score_threshold=optional(r, "score_threshold"),
            with_payload=payload_selector(r), with_vector=False))
        return [g.ScoredPoint(id=id_out(p.id), score=p.score, version=p.version, payload=payload_out(p.payload)) for p in points]

    def prefetch(self, p, shard):
        return qe.Prefetch(
            limit=p.limit or 10, query=query_in(p.query, optional(p, "using")) if p.HasField("query") else None,
            prefetches=[self.prefetch(q, shard) for q in p.prefetch] or None,
            filter=filter_in(optional(p, "filter"), shard), score_threshold=optional(p, "score_threshold"))


def main():
    port, folder = sys.argv[1:]
    store = Store(folder)
    # The official client pings every ten seconds. The real server takes that; this library's would end the connection.
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4), options=[
        ("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.so_reuseport", 0), ("grpc.http2.max_ping_strikes", 0)])
    qdrant_pb2_grpc.add_QdrantServicer_to_server(Health(), server)
    collections_service.add_CollectionsServicer_to_server(Collections(store), server)
    points_service.add_PointsServicer_to_server(Points(store), server)
    server.add_insecure_port("127.0.0.1:" + port)
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
