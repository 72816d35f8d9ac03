package compat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
)

// reply is any answer's members, as far as tests look at them.
type reply struct {
	Status            string
	Detail            json.RawMessage
	Mode              string
	InputType         string              `json:"input_type"`
	RequestIDs        []string            `json:"request_ids"`
	Reordered         [][]json.RawMessage `json:"reordered_contexts"`
	ByInput           [][]json.RawMessage `json:"reordered_by_input"`
	Indices           []int               `json:"original_indices"`
	Groups            [][]any
	Stats             map[string]float64
	IndexStats        map[string]float64 `json:"index_stats"`
	Deduplication     struct{ Results []dedupResult }
	Results           []dedupResult
	Cleared           int      `json:"conversations_cleared"`
	Removed           int      `json:"removed_count"`
	EvictedNodes      []int    `json:"evicted_node_ids"`
	Evicted           []string `json:"evicted_request_ids"`
	Shrunk            []string `json:"shrunk_request_ids"`
	NotFound          []string `json:"not_found"`
	NodesRemaining    int      `json:"nodes_remaining"`
	RequestsRemaining int      `json:"requests_remaining"`
	SearchPath        []int    `json:"search_path"`
	NodeID            int      `json:"node_id"`
	PrefixLength      int      `json:"prefix_length"`
	HasPrefix         bool     `json:"has_prefix"`
	Overlap           int
	RequestID         string    `json:"request_id"`
	TTFT              []float64 `json:"ttft_ms"`
	Count             int
	Avg               float64 `json:"avg_ms"`
	CharsSaved        int     `json:"total_chars_saved"`
}

type dedupResult struct {
	RequestID   string   `json:"request_id"`
	Original    []any    `json:"original_docs"`
	Overlapping []any    `json:"overlapping_docs"`
	New         []any    `json:"new_docs"`
	Hints       []string `json:"reference_hints"`
}

// ask sends a request as a tenant; body is JSON, a string of bytes, or nil for a GET.
func ask(ctx context.Context, t testing.TB, h http.Handler, name, path string, body any) (int, reply, []byte) {
	t.Helper()
	method, raw := http.MethodPost, []byte(nil)
	switch b := body.(type) {
	case nil:
		method = http.MethodGet
	case string:
		raw = []byte(b)
	default:
		var err error
		if raw, err = json.Marshal(b); err != nil {
			t.Fatal(err)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(tenant.With(ctx, name), method, path, bytes.NewReader(raw)))
	var out reply
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil && w.Body.Len() > 0 {
		t.Fatalf("%s %s: %v: %s", method, path, err, w.Body)
	}
	return w.Code, out, w.Body.Bytes()
}

// do asks as the only tenant there is and wants 200.
func do(t testing.TB, h http.Handler, path string, body any) reply {
	t.Helper()
	code, out, raw := ask(t.Context(), t, h, "", path, body)
	if code != http.StatusOK {
		t.Fatalf("%s: %d: %s", path, code, raw)
	}
	return out
}

func check[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func texts(lists [][]json.RawMessage) [][]string {
	out := make([][]string, len(lists))
	for i, l := range lists {
		out[i] = []string{}
		for _, x := range l {
			out[i] = append(out[i], string(x))
		}
	}
	return out
}
