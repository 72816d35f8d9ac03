package elastic

import (
	"context"
	"fmt"
	"slices"

	"github.com/ragpilot/ragpilot/retriever/internal/vectorstore"
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
func (x *Index) named(ctx context.Context, ids []string) (answer, error) {
	l := x.opts.Layout
	fields := []string{l.ID}
	if l.tenants() {
		fields = append(fields, l.Tenant)
	}
	either := []any{object{"terms": object{l.ID: ids}}, object{"ids": object{"values": ids}}}
	return x.found(ctx, object{
		"size": maxHits, "track_total_hits": false, "_source": object{"includes": fields},
		"query": object{"bool": object{"filter": []any{object{"bool": object{"should": either}}}}},
	})
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
