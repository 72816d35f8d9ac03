package elastic

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ragpilot/ragpilot/retriever/internal/remote"
	"github.com/ragpilot/ragpilot/retriever/internal/vectorstore"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Upsert embeds and stores documents; those that are there under the same tenant and ID are replaced, with Layout.Mapped
// also under an _id that another program chose. If several have the same, the last counts. It returns when searches find
// them.
//
// No document is sent if one of them cannot be stored by what is known here. Batches are sent in their order; if the server
// refuses documents, a [BulkError] names them, and the others of their batch, and the batches before, are stored. Upserting
// all of them again is the right answer to any error that passes: it stores the same.
func (x *Index) Upsert(ctx context.Context, docs []store.Document) error {
	return x.calls.Do(ctx, "upsert", func(ctx context.Context) error {
		if err := x.put(ctx, docs); err != nil {
			return err
		}
		if len(docs) == 0 {
			return nil
		}
		return x.refresh(ctx)
	})
}

// Delete removes documents. Those that do not exist are not an error. Tenant is empty in an index without tenants.
func (x *Index) Delete(ctx context.Context, tenant string, ids ...string) error {
	return x.calls.Do(ctx, "delete", func(ctx context.Context) error {
		if x.opts.Layout.tenants() != (tenant != "") {
			return fmt.Errorf("%w: tenant = %q, and the index has tenants: %t", store.ErrBadQuery, tenant, x.opts.Layout.tenants())
		}
		names := make([]vectorstore.Name, len(ids))
		for i, id := range ids {
			names[i] = vectorstore.Name{Tenant: tenant, ID: id}
		}
		known, err := x.known(ctx, names)
		if err != nil {
			return err
		}
		var b batch
		for _, name := range names {
			there := known[name]
			if len(there) == 0 {
				there = []string{serverID(tenant, name.ID)}
			}
			for _, id := range there {
				if err := b.add("delete", id, name.ID, nil); err != nil {
					return err
				}
				if b.full(x.opts) {
					if err := x.send(ctx, &b); err != nil {
						return err
					}
				}
			}
		}
		if err := x.send(ctx, &b); err != nil || len(ids) == 0 {
			return err
		}
		return x.refresh(ctx)
	})
}

// refresh makes searches see what was written.
func (x *Index) refresh(ctx context.Context) error {
	return x.read(ctx, call{name: "indices.refresh", method: http.MethodPost, path: x.opts.Index + "/_refresh"}, store.ErrBadQuery, nil)
}

func (x *Index) put(ctx context.Context, docs []store.Document) error {
	docs, err := vectorstore.LastOfEach(docs, x.opts.Layout.tenants())
	if err != nil {
		return err
	}
	sources := make([]map[string]any, len(docs))
	for i, d := range docs {
		if sources[i], err = x.source(d); err != nil {
			return err
		}
	}
	for start := 0; start < len(docs); start += x.opts.Batch {
		end := min(start+x.opts.Batch, len(docs))
		if err := x.putBatch(ctx, docs[start:end], sources[start:end]); err != nil {
			return err
		}
	}
	return nil
}

// maxID is the longest ID, in bytes: a keyword must fit into one term of the index.
const maxID = 8 << 10

// source makes what the server stores, without the vector.
func (x *Index) source(d store.Document) (map[string]any, error) {
	if len(d.ID) > maxID {
		return nil, fmt.Errorf("%w: Document.ID %.40q… has %d bytes, want at most %d", store.ErrBadDocument, d.ID, len(d.ID), maxID)
	}
	l, text := x.opts.Layout, store.ValidText(d.Text)
	metadata, err := normal(d.Metadata)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: metadata: %w", store.ErrBadDocument, d.ID, err)
	}
	own := map[string]any{l.ID: d.ID, l.Text: text, l.Version: store.Version(text)}
	if l.tenants() {
		own[l.Tenant] = d.Tenant
	}
	out := map[string]any{}
	switch {
	case l.Metadata == TopLevel:
		for key, value := range metadata {
			if x.owns(key) && own[key] != value { // the ID and version of a hit may be there
				return nil, fmt.Errorf("%w: document %q: metadata %q is a key of Options.Layout", store.ErrBadDocument, d.ID, key)
			}
		}
		out = metadata
	case len(metadata) > 0:
		out[l.Metadata] = metadata
	}
	if !l.Mapped {
		facets, numbers := map[string][]string{}, map[string][]float64{}
		flatten("", metadata, facets, numbers)
		out[facetsField], out[numbersField] = facets, numbers
	}
	maps.Copy(out, own)
	return out, nil
}

// owns reports whether a member of what is stored is not metadata.
func (x *Index) owns(key string) bool {
	l := x.opts.Layout
	return key == l.ID || key == l.Text || key == l.Version || l.tenants() && key == l.Tenant || x.opts.Embedder != nil && key == l.Vector ||
		!l.Mapped && (key == facetsField || key == numbersField)
}

// normal returns metadata as it will come back: numbers as they are written, invalid UTF-8 replaced, nothing shared with
// the caller's.
func normal(metadata map[string]any) (map[string]any, error) {
	out := map[string]any{}
	raw, err := json.Marshal(metadata)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil {
		return nil, err
	}
	if out == nil { // of "null"
		out = map[string]any{}
	}
	return out, nil
}

func (x *Index) putBatch(ctx context.Context, docs []store.Document, sources []map[string]any) error {
	if err := x.calls.Alive(ctx); err != nil {
		return err
	}
	if err := x.embed(ctx, docs, sources); err != nil {
		return err
	}
	names := make([]vectorstore.Name, len(docs))
	for i, d := range docs {
		names[i] = vectorstore.NameOf(d)
	}
	known, err := x.known(ctx, names)
	if err != nil {
		return err
	}
	var b batch
	for i, d := range docs {
		id := serverID(d.Tenant, d.ID)
		if there := known[names[i]]; len(there) > 0 {
			id = there[0]
		}
		if err := b.add("index", id, d.ID, sources[i]); err != nil {
			return err
		}
		if b.full(x.opts) {
			if err := x.send(ctx, &b); err != nil {
				return err
			}
		}
	}
	return x.send(ctx, &b)
}

// embed adds the documents' vectors.
func (x *Index) embed(ctx context.Context, docs []store.Document, sources []map[string]any) error {
	if x.opts.Embedder == nil {
		return nil
	}
	if !x.vectors.Load() {
		if err := x.checkVectors(ctx, ErrMapping); err != nil {
			return err
		}
	}
	vectors, err := x.opts.Embedder.EmbedDocuments(ctx, remote.Texts(docs))
	if err != nil {
		return fmt.Errorf("embed %d documents: %w", len(docs), err)
	}
	if len(vectors) != len(docs) {
		return fmt.Errorf("embed %d documents: the embedder made %d vectors", len(docs), len(vectors))
	}
	for i, v := range vectors {
		sources[i][x.opts.Layout.Vector] = v
	}
	return nil
}

// serverID returns the _id of a document. Servers allow 512 bytes, and know no tenants: what is longer, or is a tenant's,
// is known by its hash.
func serverID(tenant, id string) string {
	if tenant == "" && len(id) <= 512 && !strings.HasPrefix(id, "~") {
		return id
	}
	sum := sha256.Sum256([]byte(tenant + "\x00" + id))
	return "~" + hex.EncodeToString(sum[:])
}

// batch is a bulk request.
type batch struct {
	body bytes.Buffer
	ids  []string // of the documents, in order
}

// add appends an action on an _id, and the document's ID; a nil source: without a document.
func (b *batch) add(action, serverID, id string, source any) error {
	enc := json.NewEncoder(&b.body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]map[string]string{action: {"_id": serverID}}); err != nil {
		return err
	}
	if source != nil {
		if err := enc.Encode(source); err != nil {
			return fmt.Errorf("%w: %q: %w", store.ErrBadDocument, id, err)
		}
	}
	b.ids = append(b.ids, id)
	return nil
}

func (b *batch) full(o Options) bool { return b.body.Len() >= o.BatchBytes || len(b.ids) >= o.Batch }

// send sends the batch and empties it. It is sent again if the server said that it was too busy to begin: an answer that
// did not come may mean that the documents were stored, and others of somebody else since then.
func (x *Index) send(ctx context.Context, b *batch) error {
	if len(b.ids) == 0 {
		return nil
	}
	body, ids := bytes.Clone(b.body.Bytes()), b.ids
	b.body.Reset()
	b.ids = nil
	return x.calls.Retry(ctx, tooBusy, func() error {
		var a bulkAnswer
		err := x.once(ctx, call{
			name: "bulk", method: http.MethodPost, path: x.opts.Index + "/_bulk", body: body,
			query: url.Values{"require_alias": {strconv.FormatBool(x.needsAlias())}},
		}, store.ErrBadDocument, &a)
		if err != nil {
			return err
		}
		return a.failures(ids)
	})
}

// needsAlias reports whether a write must find an alias. Otherwise the server would make an index of that name, with a
// mapping of its own guess.
func (x *Index) needsAlias() bool { return !x.concrete && !x.opts.Layout.Mapped }

func tooBusy(err error) bool {
	var refused *ServerError
	return errors.As(err, &refused) && refused.Status == http.StatusTooManyRequests
}
