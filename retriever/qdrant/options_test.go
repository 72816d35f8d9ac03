package qdrant_test

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/retriever/qdrant"
	"github.com/ragpilot/ragpilot/retriever/retrievertest"
	"github.com/ragpilot/ragpilot/retriever/store"
)

func TestOpenNamesFieldAndValue(t *testing.T) {
	_, client := newFake(t, nil)
	e, words := retrievertest.Embedder{}, qdrant.Words{}
	for want, opts := range map[string]qdrant.Options{
		`Options.Collection = " "`:             {Collection: " ", Embedder: e},
		`Options.Embedder is nil`:              {Collection: "c"},
		`Options.Sparse is nil`:                {Collection: "c", Embedder: e, Mode: store.Hybrid},
		`Options.Addr = "localhost"`:           {Collection: "c", Embedder: e, Addr: "localhost"},
		`Options.Addr = "localhost:x"`:         {Collection: "c", Embedder: e, Addr: "localhost:x"},
		`Options.Client is set`:                {Collection: "c", Embedder: e, Client: client, APIKey: "k"},
		`Options.Mode = Mode(9)`:               {Collection: "c", Embedder: e, Mode: 9},
		`Options.Fusion = -1`:                  {Collection: "c", Embedder: e, Fusion: -1},
		`Options.Batch = -1`:                   {Collection: "c", Embedder: e, Batch: -1},
		`Options.Layout.Text = "a.b"`:          {Collection: "c", Embedder: e, Layout: qdrant.Layout{Text: "a.b"}},
		`Options.Layout.Tenant = "metadata"`:   {Collection: "c", Embedder: e, Layout: qdrant.Layout{Tenant: "metadata"}},
		`Options.Layout.ID = "."`:              {Collection: "c", Sparse: words, Layout: qdrant.Layout{ID: "."}},
		`Options.SparseVector = "w" is Vector`: {Collection: "c", Embedder: e, Sparse: words, Vector: "w", SparseVector: "w"},
	} {
		_, err := qdrant.Open(opts)
		if err == nil || !strings.HasPrefix(err.Error(), "qdrant: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestOpenDoesNotWait: neither for a server nor for a collection.
func TestOpenDoesNotWait(t *testing.T) {
	for _, opts := range []qdrant.Options{
		{Collection: "c", Embedder: retrievertest.Embedder{}},
		{Collection: "c", Sparse: qdrant.Words{}, Addr: "[::1]:1", TLS: &tls.Config{MinVersion: tls.VersionTLS13}},
	} {
		x, err := qdrant.Open(opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}
