package qdrant

import (
	"context"
	"fmt"
	"maps"
	"slices"

	api "github.com/qdrant/go-client/qdrant"
	"go.opentelemetry.io/otel/attribute"

	"github.com/ragpilot/ragpilot/retriever/internal/remote"
	"github.com/ragpilot/ragpilot/retriever/internal/vectorstore"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// maxBatchBytes bounds the texts of one request, unless a single text is larger.
const maxBatchBytes = 8 << 20

// Upsert embeds and stores documents; those that are there under the same tenant and ID are replaced, and so is, as a
// whole, a point that another program wrote and that searches know by that ID. If several have the same, the last counts.
// It returns when searches find them.
//
// Documents are sent in batches, in their order. If one fails, the error says which documents it was about; those
// before are stored. Upserting all of them again is the right answer to any error that passes: it stores the same points.
func (x *Index) Upsert(ctx context.Context, docs []store.Document) error {
	return x.call(ctx, "upsert", func(ctx context.Context) error {
		docs, err := vectorstore.LastOfEach(docs, x.opts.Layout.tenants())
		if err != nil {
			return err
		}
		for start := 0; start < len(docs); {
			end := start + x.opts.batch(docs[start:])
			if err := x.upsert(ctx, docs[start:end]); err != nil {
				return fmt.Errorf("documents %d to %d of %d: %w", start+1, end, len(docs), err)
			}
			start = end
		}
		return nil
	}, batchSize(len(docs)))
}

func batchSize(n int) attribute.KeyValue { return attribute.Int("db.operation.batch.size", n) }

// batch returns how many of the documents, at least one, go into the next request.
func (o Options) batch(docs []store.Document) int {
	bytes := 0
	for i, d := range docs[:min(len(docs), o.Batch)] {
		bytes += len(d.Text)
		if i > 0 && bytes > maxBatchBytes {
			return i
		}
	}
	return min(len(docs), o.Batch)
}

func (x *Index) upsert(ctx context.Context, docs []store.Document) error {
	foreign, err := x.foreign(ctx, docs, store.ErrBadDocument)
	if err != nil {
		return err
	}
	points := make([]*api.PointStruct, len(docs))
	for i, d := range docs {
		payload, err := x.opts.Layout.payload(d)
		if err != nil {
			return err
		}
		id, known := foreign[vectorstore.NameOf(d)]
		if !known {
			id = api.NewIDUUID(PointID(d.Tenant, d.ID))
		}
		points[i] = &api.PointStruct{Id: id, Payload: payload}
	}
	length, err := x.embedAll(ctx, docs, points)
	if err != nil {
		return err
	}
	_, err = x.client.Upsert(ctx, &api.UpsertPoints{CollectionName: x.opts.Collection, Points: points, Wait: new(true)})
	if err != nil {
		return x.explain(ctx, typed(err, store.ErrBadDocument), length)
	}
	return nil
}

// embedAll gives the points their vectors, of all embedders there are, and returns the length of the dense ones.
func (x *Index) embedAll(ctx context.Context, docs []store.Document, points []*api.PointStruct) (length int, err error) {
	texts := remote.Texts(docs)
	var dense [][]float32
	if x.opts.Embedder != nil {
		if dense, err = x.opts.Embedder.EmbedDocuments(ctx, texts); err != nil {
			return 0, fmt.Errorf("embed documents: %w", err)
		}
		if len(dense) != len(texts) {
			return 0, fmt.Errorf("Options.Embedder made %d vectors of %d texts", len(dense), len(texts))
		}
		length = len(dense[0])
	}
	var sparse []SparseVector
	if x.opts.Sparse != nil {
		if sparse, err = x.opts.Sparse.SparseDocuments(ctx, texts); err != nil {
			return 0, fmt.Errorf("embed the words of documents: %w", err)
		}
		if len(sparse) != len(texts) {
			return 0, fmt.Errorf("Options.Sparse made %d vectors of %d texts", len(sparse), len(texts))
		}
	}
	for i := range points {
		points[i].Vectors = x.pointVectors(at(dense, i), at(sparse, i))
	}
	return length, nil
}

// at returns the i-th element, or the zero value of a nil slice.
func at[T any](in []T, i int) (out T) {
	if in == nil {
		return out
	}
	return in[i]
}

func (x *Index) pointVectors(dense []float32, sparse SparseVector) *api.Vectors {
	if x.opts.Sparse == nil && x.opts.Vector == "" {
		return api.NewVectorsDense(dense)
	}
	named := map[string]*api.Vector{}
	if dense != nil {
		named[x.opts.Vector] = api.NewVectorDense(dense)
	}
	if len(sparse.Indices) > 0 {
		named[x.opts.SparseVector] = api.NewVectorSparse(sparse.Indices, sparse.Values)
	}
	return api.NewVectorsMap(named)
}

// Delete removes documents, also those in points that another program wrote, and returns when no search finds them. Documents
// that do not exist are not an error. Tenant is empty in a collection without tenants.
func (x *Index) Delete(ctx context.Context, tenant string, ids ...string) error {
	return x.call(ctx, "delete", func(ctx context.Context) error {
		if err := store.CheckTenant(tenant, x.opts.Layout.tenants()); err != nil || len(ids) == 0 {
			return err
		}
		docs, points := make([]store.Document, len(ids)), make([]*api.PointId, len(ids))
		for i, id := range ids {
			docs[i] = store.Document{Tenant: tenant, ID: id}
			points[i] = api.NewIDUUID(PointID(tenant, id))
		}
		foreign, err := x.foreign(ctx, docs, store.ErrBadQuery)
		if err != nil {
			return err
		}
		points = slices.AppendSeq(points, maps.Values(foreign))
		_, err = x.client.Delete(ctx, &api.DeletePoints{
			CollectionName: x.opts.Collection, Points: api.NewPointsSelectorIDs(points), Wait: new(true),
		})
		return typed(err, store.ErrBadQuery)
	}, batchSize(len(ids)))
}
