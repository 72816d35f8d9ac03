package qdrant

import (
	"context"
	"errors"
	"fmt"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/ragpilot/ragpilot/internal/storage/qdrantconn"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Create makes the collection for the embedders of the index, if it does not exist: dense vectors of the length that the
// embedder gives, compared by cosine; sparse ones weighted by how rare a word is in the collection; an index of the tenants;
// and an index of the strings at each of the metadata's keys, which filters by them need to be fast in large collections.
// A collection that exists is left as it is, and whether it fits is found out by its use.
//
// Collections with other needs (shards, replicas, quantization) are made with the client.
func (x *Index) Create(ctx context.Context, keys ...string) (err error) {
	ctx, c, err := x.begin(ctx, "create")
	if err != nil {
		return err
	}
	defer func() { err = c.end(ctx, err) }()
	fields, err := x.indexed(keys)
	if err != nil {
		return err
	}
	exists, err := x.client.CollectionExists(ctx, x.opts.Collection)
	if err != nil {
		return typed(err, store.ErrBadQuery)
	}
	if exists {
		return nil
	}
	request := &api.CreateCollection{CollectionName: x.opts.Collection}
	if err := x.configure(ctx, request); err != nil {
		return err
	}
	if err := x.client.CreateCollection(ctx, request); err != nil && !x.madeByAnother(ctx, err) {
		return typed(err, store.ErrBadQuery)
	}
	for _, f := range fields {
		if _, err := x.client.CreateFieldIndex(ctx, f); err != nil {
			return fmt.Errorf("index %q: %w", f.GetFieldName(), typed(err, store.ErrBadQuery))
		}
	}
	return nil
}

// configure says what vectors the collection has.
func (x *Index) configure(ctx context.Context, request *api.CreateCollection) error {
	if x.opts.Embedder != nil {
		v, err := x.opts.Embedder.EmbedQuery(ctx, "how long is a vector?")
		if err != nil {
			return fmt.Errorf("embed a text to see the length of vectors: %w", err)
		}
		if len(v) == 0 {
			return errors.New("Options.Embedder made a vector without numbers")
		}
		params := &api.VectorParams{Size: uint64(len(v)), Distance: api.Distance_Cosine}
		request.VectorsConfig = api.NewVectorsConfig(params)
		if x.opts.Vector != "" {
			request.VectorsConfig = api.NewVectorsConfigMap(map[string]*api.VectorParams{x.opts.Vector: params})
		}
	}
	if x.opts.Sparse != nil {
		request.SparseVectorsConfig = api.NewSparseVectorsConfig(map[string]*api.SparseVectorParams{
			x.opts.SparseVector: {Modifier: api.Modifier_Idf.Enum()},
		})
	}
	return nil
}

// madeByAnother reports whether the collection exists now: two programs that start together both make it.
func (x *Index) madeByAnother(ctx context.Context, err error) bool {
	if !qdrantconn.MayExist(err) {
		return false
	}
	exists, err := x.client.CollectionExists(ctx, x.opts.Collection)
	return err == nil && exists
}

// indexed returns the requests for the payload's indexes.
func (x *Index) indexed(keys []string) ([]*api.CreateFieldIndexCollection, error) {
	wait := true
	field := func(path string, params *api.KeywordIndexParams) *api.CreateFieldIndexCollection {
		return &api.CreateFieldIndexCollection{
			CollectionName: x.opts.Collection, FieldName: path, Wait: &wait,
			FieldType: api.FieldType_FieldTypeKeyword.Enum(), FieldIndexParams: api.NewPayloadIndexParamsKeyword(params),
		}
	}
	var out []*api.CreateFieldIndexCollection
	if x.opts.Layout.tenants() {
		out = append(out, field(x.opts.Layout.Tenant, &api.KeywordIndexParams{IsTenant: &wait}))
	}
	for _, key := range keys {
		path, err := x.path(key)
		if err != nil {
			return nil, err
		}
		out = append(out, field(path, &api.KeywordIndexParams{}))
	}
	return out, nil
}
