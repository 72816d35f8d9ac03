package qdrant

import (
	"context"
	"errors"
	"fmt"

	"github.com/ragpilot/ragpilot/retriever/store"
)

// explain asks the server for the length of its vectors when it refused a request, and says so if ours have another one.
func (x *Index) explain(ctx context.Context, err error, length int) error {
	if length == 0 || !errors.Is(err, store.ErrBadQuery) && !errors.Is(err, store.ErrBadDocument) {
		return err
	}
	info, infoErr := x.client.GetCollectionInfo(ctx, x.opts.Collection)
	if infoErr != nil {
		return err // the first error says more
	}
	config := info.GetConfig().GetParams().GetVectorsConfig()
	params := config.GetParams()
	if x.opts.Vector != "" {
		params = config.GetParamsMap().GetMap()[x.opts.Vector]
	}
	switch {
	case params == nil:
		return fmt.Errorf("the collection has no dense vector named %q (Options.Vector): %w", x.opts.Vector, err)
	case params.GetSize() != uint64(length): //nolint:gosec // a length
		return fmt.Errorf("%w: %d from Options.Embedder, %d in the collection: %w", store.ErrDimension, length, params.GetSize(), err)
	}
	return err
}
