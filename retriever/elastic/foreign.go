package elastic

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/elastic/go-elasticsearch/v8/typedapi/core/search"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types"

	"github.com/ragpilot/ragpilot/retriever/internal/vectorstore"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// maxKnown bounds the documents of one question to the server, so that it can name several for each.
const maxKnown = 1000

// known returns the _ids under which the server has documents, in their order. Another program may have chosen them; in an
// index that is not Layout.Mapped they are those of serverID, and the server is not asked.
func (x *Index) known(ctx context.Context, docs []vectorstore.Name) (map[vectorstore.Name][]string, error) {
	if !x.opts.Layout.Mapped {
		return nil, nil
	}
	asked, out := make(map[vectorstore.Name]bool, len(docs)), map[vectorstore.Name][]string{}
	for part := range slices.Chunk(docs, maxKnown) {
		ids := make([]string, len(part))
		for i, d := range part {
			ids[i], asked[d] = d.ID, true
		}
		a, err := x.named(ctx, ids)
		if err != nil {
			return nil, fmt.Errorf("look for documents that are there: %w", err)
		}
		for i := range a.Hits.Hits {
			raw := &a.Hits.Hits[i]
			if d, ok := x.owner(raw); ok && asked[d] {
				out[d] = append(out[d], raw.ID)
			}
		}
	}
	for _, ids := range out {
		slices.Sort(ids)
	}
	return out, nil
}

// named asks for the documents that may have these IDs.
func (x *Index) named(ctx context.Context, ids []string) (a answer, err error) {
	l, size := x.opts.Layout, maxHits
	fields := []string{l.ID}
	if l.tenants() {
		fields = append(fields, l.Tenant)
	}
	r := &search.Request{
		Size: &size, TrackTotalHits: false, Source_: types.SourceFilter{Includes: fields},
		Query: &types.Query{Bool: &types.BoolQuery{Filter: []types.Query{{Bool: &types.BoolQuery{Should: []types.Query{
			{Terms: &types.TermsQuery{TermsQuery: map[string]types.TermsQueryField{l.ID: ids}}}, {Ids: &types.IdsQuery{Values: ids}},
		}}}}}},
	}
	err = x.read(ctx, func(ctx context.Context) (*http.Response, error) {
		return x.client.Search().Index(x.opts.Index).AllowPartialSearchResults(false).Request(r).Perform(ctx)
	}, store.ErrBadQuery, &a)
	return a, err
}

// owner returns the name of a document as searches give it; false: it has none.
func (x *Index) owner(raw *rawHit) (d vectorstore.Name, ok bool) {
	l := x.opts.Layout
	if take(raw.Source, l.ID, &d.ID) != nil || l.tenants() && take(raw.Source, l.Tenant, &d.Tenant) != nil {
		return d, false
	}
	if d.ID == "" {
		d.ID = raw.ID
	}
	return d, true
}
