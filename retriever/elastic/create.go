package elastic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/ragpilot/ragpilot/retriever/internal/remote"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Schema says how [Index.Create] and [Index.Rebuild] make an index. The zero value is the recommended setup: one shard, one
// replica, texts cut by the server's standard analyzer.
type Schema struct {
	// Analyzer names how texts and questions become words, such as "english". Empty: the server's "standard".
	Analyzer string
	// Similarity compares vectors: "cosine", "dot_product" (of vectors of length 1) or "l2_norm". Empty: "cosine".
	Similarity string
	// IndexOptions say how vectors are indexed, the server's "index_options", such as {"type": "int8_hnsw"}. Nil: the
	// vectors as they are ({"type": "hnsw"}) if at least half of their numbers are zero, as with embed.NewHashed, and
	// else what the server chooses. Newer servers choose one bit for each number of a long vector, and that loses much
	// of a vector that is mostly zeros.
	IndexOptions map[string]any
	// Settings are index settings, such as {"number_of_replicas": 0} or an "analysis" with analyzers of your own.
	Settings map[string]any
	// Properties are mappings of further fields, for filters in the server's terms.
	Properties map[string]any
}

// Create makes an index for documents of this layout and the alias Options.Index for it, if there is none. An alias that
// exists is left as it is, and whether its index fits is found out by its use.
func (x *Index) Create(ctx context.Context, s Schema) error {
	return x.calls.Do(ctx, "create", func(ctx context.Context) error {
		if x.opts.Layout.Mapped {
			return errors.New("Options.Layout.Mapped is set: the index is made by others")
		}
		targets, err := x.targets(ctx)
		if err != nil || len(targets) > 0 {
			return err
		}
		err = x.make(ctx, s, indexName(x.opts.Index, 1), x.opts.Index)
		var refused *ServerError
		if errors.As(err, &refused) && refused.Type == "resource_already_exists_exception" {
			// Two programs that start together both make it.
			if targets, _ := x.targets(ctx); len(targets) > 0 {
				return nil
			}
		}
		return err
	})
}

// Rebuild makes a new index, lets fill write into it, and then lets the alias Options.Index lead to it, in one step:
// searches that run meanwhile find the old documents, and from then on the new ones. The old index is removed. If fill
// fails, the new one is removed and nothing has changed.
//
// The Index that fill gets is closed when Rebuild returns. What others write through the alias while fill runs goes into
// the old index; let fill read a source that has it as well.
func (x *Index) Rebuild(ctx context.Context, s Schema, fill func(ctx context.Context, next *Index) error) error {
	return x.calls.Do(ctx, "rebuild", func(ctx context.Context) error {
		if x.opts.Layout.Mapped {
			return errors.New("Options.Layout.Mapped is set: the index is made by others")
		}
		old, err := x.targets(ctx)
		if err != nil {
			return err
		}
		number, err := x.nextNumber(ctx)
		if err != nil {
			return err
		}
		name := indexName(x.opts.Index, number)
		if err := x.make(ctx, s, name, ""); err != nil {
			return err
		}
		next := &Index{opts: x.opts, client: x.client, calls: x.calls.For(name), concrete: true, vectors: new(atomic.Bool)}
		next.opts.Index = name
		defer func() { _ = next.Close() }()
		if err = fill(ctx, next); err == nil {
			err = next.refresh(ctx)
		}
		if err == nil {
			if err = x.swap(ctx, old, name); err != nil {
				now, unknown := x.targets(context.WithoutCancel(ctx)) // it may have been done, and the answer lost
				switch {
				case unknown != nil:
					return errors.Join(err, fmt.Errorf("where the alias leads to is not known, and no index was removed: %w", unknown))
				case slices.Contains(now, name):
					err = nil
				}
			}
		}
		if err != nil { // also when ctx has ended
			return errors.Join(err, x.drop(context.WithoutCancel(ctx), name))
		}
		return x.drop(ctx, old...)
	})
}

// indexName returns the name of the n-th index behind an alias.
func indexName(alias string, n int) string { return fmt.Sprintf("%s-%06d", alias, n) }

// body returns the request that makes an index.
func (x *Index) body(ctx context.Context, s Schema, alias string) ([]byte, error) {
	l := x.opts.Layout
	keyword := map[string]any{"type": "keyword"}
	unsearched := map[string]any{"type": "keyword", "index": false, "doc_values": false}
	text := map[string]any{"type": "text"}
	if s.Analyzer != "" {
		text["analyzer"] = s.Analyzer
	}
	properties := map[string]any{
		l.ID: keyword, l.Text: text, l.Version: unsearched,
		facetsField:  map[string]any{"type": "flattened", "depth_limit": 1},
		numbersField: map[string]any{"type": "object", "dynamic": true},
	}
	if l.Metadata != TopLevel {
		properties[l.Metadata] = map[string]any{"type": "object", "enabled": false}
	}
	if l.tenants() {
		properties[l.Tenant] = keyword
	}
	if x.opts.Embedder != nil {
		vector, err := x.vector(ctx, s)
		if err != nil {
			return nil, err
		}
		properties[l.Vector] = vector
	}
	maps.Copy(properties, s.Properties)
	request := map[string]any{"mappings": map[string]any{
		"dynamic": false, // what is not named here is stored and not searched
		"dynamic_templates": []any{map[string]any{"numbers": map[string]any{
			"path_match": numbersField + ".*", "mapping": map[string]any{"type": "double"},
		}}},
		"properties": properties,
	}}
	if s.Settings != nil {
		request["settings"] = s.Settings
	}
	if alias != "" {
		request["aliases"] = map[string]any{alias: map[string]any{}}
	}
	return json.Marshal(request)
}

// vector maps vectors of the length that the embedder gives.
func (x *Index) vector(ctx context.Context, s Schema) (map[string]any, error) {
	v, err := remote.SampleVector(ctx, x.opts.Embedder)
	if err != nil {
		return nil, err
	}
	field := map[string]any{"type": vectorType, "dims": len(v), "index": true, "similarity": cmp.Or(s.Similarity, "cosine")}
	switch {
	case s.IndexOptions != nil:
		field["index_options"] = s.IndexOptions
	case sparse(v):
		field["index_options"] = map[string]any{"type": "hnsw"}
	}
	return field, nil
}

// sparse reports whether most of a vector is zeros: it was made by hashing words, as no model's are.
func sparse(v []float32) bool {
	zeros := 0
	for _, n := range v {
		if n == 0 {
			zeros++
		}
	}
	return 2*zeros >= len(v)
}

func (x *Index) make(ctx context.Context, s Schema, name, alias string) error {
	body, err := x.body(ctx, s, alias)
	if err != nil {
		return err
	}
	err = x.once(ctx, call{name: "indices.create", method: http.MethodPut, path: name, body: body}, store.ErrBadQuery, nil)
	if err != nil {
		return fmt.Errorf("make index %q: %w", name, err)
	}
	return nil
}

// targets returns the indexes behind the alias; none if there is no alias.
func (x *Index) targets(ctx context.Context) ([]string, error) {
	var a map[string]json.RawMessage
	ask := call{name: "indices.get_alias", method: http.MethodGet, path: "_alias/" + x.opts.Index}
	err := x.read(ctx, ask, store.ErrBadQuery, &a)
	var refused *ServerError
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for name := range a {
		out = append(out, name)
	}
	return out, nil
}

// nextNumber returns a number that no index behind this alias, and none left behind by a rebuild that was killed, has.
func (x *Index) nextNumber(ctx context.Context) (int, error) {
	var a map[string]json.RawMessage
	err := x.read(ctx, call{
		name: "indices.get_settings", method: http.MethodGet, path: x.opts.Index + "-*/_settings",
		query: url.Values{"filter_path": {"*.settings.index.uuid"}},
	}, store.ErrBadQuery, &a)
	if err != nil {
		return 0, err
	}
	last := 0
	for name := range a {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, x.opts.Index+"-")); err == nil {
			last = max(last, n)
		}
	}
	return last + 1, nil
}

// swap lets the alias lead to another index.
func (x *Index) swap(ctx context.Context, old []string, name string) error {
	actions := make([]any, 0, len(old)+1)
	for _, o := range old {
		actions = append(actions, map[string]any{"remove": map[string]any{"index": o, "alias": x.opts.Index, "must_exist": true}})
	}
	actions = append(actions, map[string]any{"add": map[string]any{"index": name, "alias": x.opts.Index}})
	body, err := json.Marshal(map[string]any{"actions": actions})
	if err != nil {
		return err
	}
	err = x.once(ctx, call{name: "indices.update_aliases", method: http.MethodPost, path: "_aliases", body: body}, store.ErrBadQuery, nil)
	if err != nil {
		return fmt.Errorf("let the alias lead to %q: %w", name, err)
	}
	return nil
}

// drop removes indexes.
func (x *Index) drop(ctx context.Context, names ...string) error {
	for _, name := range names {
		err := x.once(ctx, call{name: "indices.delete", method: http.MethodDelete, path: name}, store.ErrBadQuery, nil)
		if err != nil {
			return fmt.Errorf("remove index %q: %w", name, err)
		}
	}
	return nil
}

// Drop removes the index behind the alias, and with it all documents. An alias that does not exist is not an error.
func (x *Index) Drop(ctx context.Context) error {
	return x.calls.Do(ctx, "drop", func(ctx context.Context) error {
		targets, err := x.targets(ctx)
		if err != nil {
			return err
		}
		return x.drop(ctx, targets...)
	})
}
