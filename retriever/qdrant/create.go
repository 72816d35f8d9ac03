package qdrant

import (
	"context"
	"fmt"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ragpilot/ragpilot/retriever/internal/remote"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Create makes the collection for the embedders of the index, if it does not exist: dense vectors of the length that the
// embedder gives, compared by cosine; sparse ones weighted by how rare a word is in the collection; an index of the tenants;
// and an index of the strings at each of the metadata's keys, which filters by them need to be fast in large collections.
// A collection that exists is left as it is, and whether it fits is found out by its use.
//
// Collections with other needs (shards, replicas, quantization) are made with the client.
func (x *Index) Create(ctx context.Context, keys ...string) error {
	return x.call(ctx, "create", func(ctx context.Context) error {
		fields, err := x.indexed(keys)
		if err != nil {
			return err
		}
		exists, err := x.client.CollectionExists(ctx, x.opts.Collection)
		if err != nil || exists {
			return typed(err, store.ErrBadQuery)
		}
		request := &api.CreateCollection{CollectionName: x.opts.Collection}
		if err := x.configure(ctx, request); err != nil {
			return err
		}
		if err := createCollection(ctx, x.client, request); err != nil {
			return typed(err, store.ErrBadQuery)
		}
		for _, f := range fields {
			if _, err := x.client.CreateFieldIndex(ctx, f); err != nil {
				return fmt.Errorf("index %q: %w", f.GetFieldName(), typed(err, store.ErrBadQuery))
			}
		}
		return nil
	})
}

// configure says what vectors the collection has.
func (x *Index) configure(ctx context.Context, request *api.CreateCollection) error {
	if x.opts.Embedder != nil {
		v, err := remote.SampleVector(ctx, x.opts.Embedder)
		if err != nil {
			return err
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

// indexed returns the requests for the payload's indexes.
func (x *Index) indexed(keys []string) ([]*api.CreateFieldIndexCollection, error) {
	field := func(path string, params *api.KeywordIndexParams) *api.CreateFieldIndexCollection {
		return &api.CreateFieldIndexCollection{
			CollectionName: x.opts.Collection, FieldName: path, Wait: new(true),
			FieldType: api.FieldType_FieldTypeKeyword.Enum(), FieldIndexParams: api.NewPayloadIndexParamsKeyword(params),
		}
	}
	var out []*api.CreateFieldIndexCollection
	if x.opts.Layout.tenants() {
		out = append(out, field(x.opts.Layout.Tenant, &api.KeywordIndexParams{IsTenant: new(true)}))
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

// createCollection makes a collection. It is no error if another program made it at the same time, which the server reports, or
// calls the request invalid.
func createCollection(ctx context.Context, client *api.Client, request *api.CreateCollection) error {
	err := client.CreateCollection(ctx, request)
	if code := status.Code(err); code == codes.AlreadyExists || code == codes.InvalidArgument {
		if exists, other := client.CollectionExists(ctx, request.GetCollectionName()); other == nil && exists {
			return nil
		}
	}
	return err
}
