package qdrant_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	api "github.com/qdrant/go-client/qdrant"

	"github.com/ragpilot/ragpilot/retriever/qdrant"
	"github.com/ragpilot/ragpilot/retriever/retrievertest"
	"github.com/ragpilot/ragpilot/retriever/store"
)

func TestCreate(t *testing.T) {
	f, client := newFake(t, nil)
	opts := with(qdrant.Options{
		Embedder: retrievertest.Embedder{}, Vector: "meaning", Sparse: qdrant.Words{}, Layout: qdrant.Layout{Tenant: "owner"},
	}, qdrant.Options{Client: client})
	x := create(t, opts)
	if err := x.Create(t.Context()); err != nil {
		t.Errorf("a second Create: %v", err)
	}
	c := f.collections["test"]
	meaning := c.config.GetVectorsConfig().GetParamsMap().GetMap()["meaning"]
	if meaning.GetSize() != 256 || meaning.GetDistance() != api.Distance_Cosine {
		t.Errorf("dense vectors %v", meaning)
	}
	if words := c.config.GetSparseVectorsConfig().GetMap()["words"]; words.GetModifier() != api.Modifier_Idf {
		t.Errorf("sparse vectors %v", words)
	}
	if len(c.indexes) != 2 || c.indexes[0].GetFieldName() != "owner" || c.indexes[1].GetFieldName() != "metadata.lang" ||
		!c.indexes[0].GetFieldIndexParams().GetKeywordIndexParams().GetIsTenant() {
		t.Errorf("indexes %v, want those of the tenant and of metadata.lang", c.indexes)
	}
	if err := x.Create(t.Context(), `"`); !errors.Is(err, store.ErrBadQuery) {
		t.Errorf("a key that cannot be: %v", err)
	}
}

// TestForeignPoints: points that something else wrote, with its own keys and IDs.
func TestForeignPoints(t *testing.T) {
	for name, server := range servers() {
		t.Run(name, func(t *testing.T) {
			opts := with(dense, server(t))
			opts.Layout = qdrant.Layout{Text: "page_content", Metadata: qdrant.TopLevel}
			x := create(t, opts)
			client := opts.Client
			if client == nil {
				client = dialReal(t, opts.Addr)
				defer func() { _ = client.Close() }()
			}
			vector, err := dense.Embedder.EmbedQuery(t.Context(), "The otter swims.")
			if err != nil {
				t.Fatal(err)
			}
			id, wait := qdrant.PointID("", "theirs"), true
			put := func(payload map[string]any) {
				_, err := client.Upsert(t.Context(), &api.UpsertPoints{CollectionName: opts.Collection, Wait: &wait, Points: []*api.PointStruct{
					{Id: api.NewIDUUID(id), Vectors: api.NewVectorsDense(vector), Payload: api.NewValueMap(payload)},
				}})
				if err != nil {
					t.Fatal(err)
				}
			}
			put(map[string]any{"page_content": "The otter swims.", "source": "a.md"})
			hits, err := x.Search(t.Context(), store.Query{Text: "otter", K: 1, Filter: store.Eq("source", "a.md")})
			if err != nil {
				t.Fatal(err)
			}
			want := []store.Hit{{
				ID: id, Text: "The otter swims.", Version: store.Version("The otter swims."), Metadata: map[string]any{"source": "a.md"},
			}}
			if diff := cmp.Diff(want, hits,
				cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Score" }, cmp.Ignore())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			put(map[string]any{"body": "The otter swims."})
			_, err = x.Search(t.Context(), store.Query{Text: "otter", K: 1})
			if !errors.Is(err, store.ErrBadDocument) || !strings.Contains(err.Error(), `"page_content"`) {
				t.Errorf("a point without text: %v, want ErrBadDocument and the key", err)
			}
		})
	}
}

// TestForeignPointsAreReplaced: a document that was found in a point of another program is stored and removed there, and no
// other tenant's point is.
func TestForeignPointsAreReplaced(t *testing.T) {
	for name, server := range servers() {
		t.Run(name, func(t *testing.T) {
			opts := with(dense, server(t))
			opts.Layout = qdrant.Layout{Text: "content", Metadata: qdrant.TopLevel, Tenant: "owner"}
			x := create(t, opts)
			client := opts.Client
			if client == nil {
				client = dialReal(t, opts.Addr)
				defer func() { _ = client.Close() }()
			}
			wait := true
			const uuid = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
			for id, owner := range map[*api.PointId]string{api.NewIDUUID(uuid): "acme", api.NewIDNum(7): "acme", api.NewIDNum(8): "ajax"} {
				vector, err := dense.Embedder.EmbedQuery(t.Context(), "The otter swims.")
				if err != nil {
					t.Fatal(err)
				}
				_, err = client.Upsert(t.Context(), &api.UpsertPoints{CollectionName: opts.Collection, Wait: &wait, Points: []*api.PointStruct{
					{
						Id: id, Vectors: api.NewVectorsDense(vector),
						Payload: api.NewValueMap(map[string]any{"content": "The otter swims.", "owner": owner}),
					},
				}})
				if err != nil {
					t.Fatal(err)
				}
			}
			texts := func(tenant string) map[string]string {
				hits, err := x.Search(t.Context(), store.Query{Text: "otter", K: 9, Tenant: tenant})
				if err != nil {
					t.Fatal(err)
				}
				out := map[string]string{}
				for _, h := range hits {
					if _, twice := out[h.ID]; twice {
						t.Errorf("two hits have the ID %s", h.ID)
					}
					out[h.ID] = h.Text
				}
				return out
			}
			for _, text := range []string{"The otter dives.", "The otter sleeps."} { // the second time they have an ID in the payload
				err := x.Upsert(t.Context(), []store.Document{
					{ID: uuid, Text: text, Tenant: "acme"},
					{ID: "7", Text: text, Tenant: "acme"},
					{ID: "8", Text: text, Tenant: "acme"},
					{ID: "9", Text: text, Tenant: "acme"},
				})
				if err != nil {
					t.Fatal(err)
				}
				want := map[string]string{uuid: text, "7": text, "8": text, "9": text}
				if diff := cmp.Diff(want, texts("acme")); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				if diff := cmp.Diff(map[string]string{"8": "The otter swims."}, texts("ajax")); diff != "" {
					t.Errorf("another tenant's: -want +got:\n%s", diff)
				}
			}
			if err := x.Delete(t.Context(), "acme", uuid, "7", "8", "9"); err != nil {
				t.Fatal(err)
			}
			if acme, ajax := texts("acme"), texts("ajax"); len(acme) != 0 || len(ajax) != 1 {
				t.Errorf("after Delete there are %v, and of another tenant %v", acme, ajax)
			}
		})
	}
}

func TestTopLevelKeysAreTaken(t *testing.T) {
	_, client := newFake(t, nil)
	opts := with(dense, qdrant.Options{Client: client})
	opts.Layout.Metadata = qdrant.TopLevel
	err := create(t, opts).Upsert(t.Context(), []store.Document{{ID: "a", Text: "A page.", Metadata: map[string]any{"text": "x"}}})
	if !errors.Is(err, store.ErrBadDocument) || !strings.Contains(err.Error(), `metadata "text"`) {
		t.Errorf("error %v, want ErrBadDocument and the key", err)
	}
}

// TestManyTies: 3,000 equal documents: more than any search fetches at first.
func TestManyTies(t *testing.T) {
	for name, server := range servers() {
		t.Run(name, func(t *testing.T) {
			opts := with(dense, server(t))
			opts.Batch = 1000
			x := create(t, opts)
			var docs []store.Document
			for i := range 3000 {
				docs = append(docs, store.Document{
					ID: fmt.Sprintf("%04d", (i*7)%3000), Text: "The same page.", Metadata: map[string]any{"n": i},
				})
			}
			if err := x.Upsert(t.Context(), docs); err != nil {
				t.Fatal(err)
			}
			hits, err := x.Search(t.Context(), store.Query{Text: "same page", K: 4})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range hits {
				got = append(got, h.ID)
				if h.Text != "The same page." || h.Score == 0 || h.Metadata["n"] == nil {
					t.Errorf("hit %+v is not whole", h)
				}
			}
			if diff := cmp.Diff([]string{"0000", "0001", "0002", "0003"}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestQuestionWithoutWords: a search by words has nothing to look for, a hybrid one still has the meaning.
func TestQuestionWithoutWords(t *testing.T) {
	for mode, want := range map[store.Mode]int{store.Lexical: 0, store.Hybrid: 1} {
		_, client := newFake(t, nil)
		opts := with(qdrant.Options{Embedder: retrievertest.Embedder{}, Vector: "meaning", Sparse: qdrant.Words{}, Mode: mode},
			qdrant.Options{Client: client})
		x := create(t, opts)
		if err := x.Upsert(t.Context(), []store.Document{{ID: "a", Text: "The otter swims."}}); err != nil {
			t.Fatal(err)
		}
		if hits, err := x.Search(t.Context(), store.Query{Text: "?!", K: 3}); err != nil || len(hits) != want {
			t.Errorf("mode %v: hits %v, error %v; want %d", mode, hits, err, want)
		}
	}
}

// TestPointID: the IDs of points are part of what is stored, and must never change.
func TestPointID(t *testing.T) {
	for _, test := range [][3]string{
		{"", "guide.md#1", "aa0895fc-83b0-5049-8df0-a5a07db5863c"},
		{"acme", "guide.md#1", "2ac7e51e-09a1-5412-b36a-d51561b35e29"},
	} {
		if got := qdrant.PointID(test[0], test[1]); got != test[2] {
			t.Errorf("PointID(%q, %q) = %s, want %s", test[0], test[1], got, test[2])
		}
	}
	if qdrant.PointID("a", "bc") == qdrant.PointID("ab", "c") {
		t.Error("two documents have one point")
	}
}
