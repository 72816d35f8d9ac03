package qdrant

import (
	"context"
	"fmt"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/ragpilot/ragpilot/internal/base/qdrantconn"
)

// Keys of payloads that filters compare.
var (
	recordKeys = []string{keyID, keyScope, keyUser, keyAgent, keyRun, keyHash, keyTx}
	otherKeys  = []string{keyKind, keyID, keyScope, keyUser, keyAgent, keyRun, keyMemory, keyTx, keyCommit}
)

// create makes the collection of history and messages, and the head in it.
func (b *Backend) create(ctx context.Context) error {
	request := &api.CreateCollection{
		CollectionName: b.opts.Collection,
		// A collection has to have some kind of vectors; its points have none.
		SparseVectorsConfig: api.NewSparseVectorsConfig(map[string]*api.SparseVectorParams{"unused": {}}),
	}
	if err := b.collection(ctx, request, otherKeys); err != nil {
		return err
	}
	return b.makeHead(ctx)
}

// createVectors makes the collection of memories whose vectors have that length. The vectors are kept as they are, which the
// server would not do if it compared them by cosine.
func (b *Backend) createVectors(ctx context.Context, dimensions int) error {
	return b.collection(ctx, &api.CreateCollection{
		CollectionName: b.vectors(dimensions),
		VectorsConfig: api.NewVectorsConfig(&api.VectorParams{
			Size: uint64(dimensions), Distance: api.Distance_Dot, //nolint:gosec // a length
		}),
	}, recordKeys)
}

// collection makes a collection if it does not exist. Several processes may do so at a time.
func (b *Backend) collection(ctx context.Context, request *api.CreateCollection, keys []string) error {
	name := request.GetCollectionName()
	b.mu.Lock()
	made := b.made[name]
	b.mu.Unlock()
	if made {
		return nil
	}
	exists, err := call(ctx, b, "look for collection "+name, b.client.CollectionExists, name)
	if err != nil {
		return err
	}
	if !exists {
		if err := b.makeCollection(ctx, request); err != nil {
			return err
		}
	}
	if err := b.indexes(ctx, name, keys); err != nil {
		return err
	}
	b.mu.Lock()
	b.made[name] = true
	b.mu.Unlock()
	return nil
}

// indexes makes the indexes that a collection lacks, which may be one whose maker was killed.
func (b *Backend) indexes(ctx context.Context, collection string, keys []string) error {
	info, err := call(ctx, b, "describe collection "+collection, b.client.GetCollectionInfo, collection)
	if err != nil {
		return err
	}
	kinds := map[string]api.FieldType{keyNumber: api.FieldType_FieldTypeInteger}
	for _, key := range keys {
		kinds[key] = api.FieldType_FieldTypeKeyword
	}
	for _, key := range sortedKeys(kinds) {
		if info.GetPayloadSchema()[key] != nil {
			continue
		}
		if err := b.index(ctx, collection, key, kinds[key]); err != nil {
			return err
		}
	}
	return nil
}

func (b *Backend) makeCollection(ctx context.Context, request *api.CreateCollection) error {
	request.ShardNumber, request.ReplicationFactor = new(uint32(1)), new(uint32(1))
	create := func(ctx context.Context, request *api.CreateCollection) (struct{}, error) {
		return struct{}{}, qdrantconn.CreateCollection(ctx, b.client, request)
	}
	return done(ctx, b, "create collection "+request.GetCollectionName(), create, request)
}

func (b *Backend) index(ctx context.Context, collection, key string, kind api.FieldType) error {
	return done(ctx, b, fmt.Sprintf("index %q of collection %s", key, collection), b.client.CreateFieldIndex, &api.CreateFieldIndexCollection{
		CollectionName: collection, FieldName: key, Wait: new(true), FieldType: kind.Enum(),
	})
}
