package compat_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/internal/sidecar/compat"
)

// lawful checks what every answer of /reorder must keep: each context comes back whole, under the index that it was sent
// with, and with a request ID of its own.
func lawful(t rapid.TB, sent [][]any, got reply, stateless bool) {
	t.Helper()
	if len(got.Indices) != len(sent) || len(got.Reordered) != len(sent) {
		t.Fatalf("%d indices and %d contexts for %d", len(got.Indices), len(got.Reordered), len(sent))
	}
	used := map[int]bool{}
	for i, at := range got.Indices {
		if at < 0 || at >= len(sent) || used[at] {
			t.Fatalf("original_indices %v", got.Indices)
		}
		used[at] = true
		var want []string
		for _, d := range sent[at] {
			raw, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, string(raw))
		}
		have := texts(got.Reordered)[i]
		if len(got.ByInput) > 0 && !slices.Equal(have, texts(got.ByInput)[at]) {
			t.Fatalf("reordered_by_input[%d] is %v, reordered_contexts[%d] is %v", at, texts(got.ByInput)[at], i, have)
		}
		if slices.Sort(want); !slices.Equal(want, slices.Sorted(slices.Values(have))) {
			t.Fatalf("contexts[%d] = %v came back as %v", at, want, have)
		}
	}
	if stateless {
		return
	}
	ids := slices.Sorted(slices.Values(got.RequestIDs))
	if len(slices.Compact(ids)) != len(sent) || slices.Contains(ids, "") {
		t.Fatalf("request_ids %v for %d contexts", got.RequestIDs, len(sent))
	}
}

// Whatever batches come in whatever order, with repeated documents, equal and empty contexts, integers and strings.
func TestReorderKeepsContexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stateless := rapid.Bool().Draw(t, "stateless")
		api := compat.New(compat.Options{Stateless: stateless})
		ids := []string{}
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			asStrings := rapid.Bool().Draw(t, "strings")
			doc := rapid.Custom(func(t *rapid.T) any {
				n := rapid.IntRange(-3, 9).Draw(t, "doc")
				if asStrings {
					return fmt.Sprintf("<%d & \"é\" \u2028>", n)
				}
				return n
			})
			batch := rapid.SliceOfN(rapid.SliceOfN(doc, 0, 5), 0, 7).Draw(t, "contexts")
			got := rapidAsk(t, api, "/reorder", object{
				"contexts": batch, "linkage_method": rapid.SampledFrom([]string{"average", "complete", "single", "weighted", "ward"}).Draw(t,
					"linkage"),
				"alpha": rapid.SampledFrom([]float64{0, 0.001, 1}).Draw(t, "alpha"),
			})
			lawful(t, batch, got, stateless)
			ids = append(ids, got.RequestIDs...)
			if len(ids) > 0 && rapid.Bool().Draw(t, "evict") {
				i := rapid.IntRange(0, len(ids)-1).Draw(t, "which")
				if gone := rapidAsk(t, api, "/evict", object{"request_ids": ids[i : i+1]}); len(gone.NotFound) > 0 {
					t.Fatalf("%s is not found", ids[i])
				}
				ids = slices.Delete(ids, i, i+1)
			}
		}
		if stateless {
			return
		}
		gone := rapidAsk(t, api, "/evict", object{"request_ids": ids})
		if len(gone.NotFound) > 0 || gone.RequestsRemaining > 0 {
			t.Fatalf("not found %v, %d remain", gone.NotFound, gone.RequestsRemaining)
		}
		if n := api.Sizes(""); n.Nodes > 1 || n.Docs != n.RootDocs {
			t.Fatalf("%d nodes and %d documents are left, %d of the root", n.Nodes, n.Docs, n.RootDocs)
		}
	})
}

func rapidAsk(t *rapid.T, api *compat.API, path string, body any) reply {
	code, out, raw := request(t, api, path, body)
	if code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, code, raw)
	}
	return out
}

func TestCompatIncrementalOrder(t *testing.T) {
	first := object{"contexts": lists{{1, 2, 3, 4, 5}, {1, 2, 3, 6, 7}, {8, 9, 10, 11, 12}}}
	second := object{"contexts": lists{{3, 2, 1, 20}, {30, 31, 32}, {12, 8, 40}}}
	now, then := compat.New(compat.Options{}), compat.New(compat.Options{CompatIncrementalOrder: true})
	do(t, now, "/reorder", first)
	do(t, then, "/reorder", first)
	a, b := do(t, now, "/reorder", second), do(t, then, "/reorder", second)
	check(t, "execution order", a.Indices, b.Indices)
	check(t, "input order", texts(a.ByInput), texts(b.Reordered))
	check(t, "the old shape has no other member", 0, len(b.ByInput))
	if slices.IsSorted(a.Indices) {
		t.Errorf("original_indices %v are the same in both orders", a.Indices)
	}
}

// 1,000 siblings break the reference; here a node may have any number of children.
func TestManySiblings(t *testing.T) {
	const n = 1100
	apart := func(from int) (out lists) {
		for i := range n {
			out = append(out, []int{from + 3*i, from + 3*i + 1, from + 3*i + 2})
		}
		return out
	}
	api := compat.New(compat.Options{})
	first := do(t, api, "/reorder", object{"contexts": apart(0)})
	check(t, "groups of their own", n, len(first.Indices))
	second := do(t, api, "/reorder", object{"contexts": apart(10_000)})
	check(t, "nodes", float64(2*n+1), second.Stats["num_nodes"])
	third := do(t, api, "/reorder", object{"contexts": lists{{3*700 + 2, 5, 3 * 700}}})
	check(t, "finds one of them", []string{"2100", "2102", "5"}, texts(third.Reordered)[0])
	found := do(t, api, "/search", object{"context": []int{10_000 + 3*1099}})
	check(t, "overlap", 1, found.Overlap)
	check(t, "removed", 2*n, do(t, api, "/evict", object{"request_ids": append(first.RequestIDs, second.RequestIDs...)}).Removed)
}

// A string is the same document wherever it stands, in whatever spelling, and comes back as it was sent.
func TestDocumentsComeBackAsSent(t *testing.T) {
	api := compat.New(compat.Options{})
	_, got, raw := ask(t.Context(), t, api, "", "/reorder", `{"contexts":[["\u0061", "<b>", "\ud800"], ["b", "a", "\ud801"]]}`)
	check(t, "first batch", [][]string{{`"\u0061"`, `"<b>"`, `"\ud800"`}, {`"a"`, `"b"`, `"\ud801"`}}, texts(got.Reordered))
	check(t, "type", "string", got.InputType)
	_, got, _ = ask(
		t.Context(),
		t,
		api,
		"",
		"/reorder",
		`{"contexts":[[1.0, 18446744073709551616, -9223372036854775808, 1], [18446744073709551616]]}`,
	)
	check(t, "second batch", [][]string{{"18446744073709551616", "1.0", "-9223372036854775808", "1"}, {"18446744073709551616"}},
		[][]string{texts(got.ByInput)[0], texts(got.ByInput)[1]})
	check(t, "type", "integer", got.InputType)
	if strings.Contains(string(raw), "\ufffd") {
		t.Errorf("something was lost: %s", raw)
	}
	// An integer is no string of the same digits.
	check(t, "5", 0, do(t, api, "/search", object{"context": []string{"1"}}).Overlap)
}

// Names of strings last as long as contexts that hold them; the order of a shared prefix is by first sight.
func TestSharedPrefixOfStrings(t *testing.T) {
	api := compat.New(compat.Options{})
	do(t, api, "/reorder", object{"contexts": [][]string{{"z", "y", "x"}}})
	got := do(t, api, "/reorder", object{"contexts": [][]string{{"p", "b", "c"}, {"c", "p", "d"}}})
	check(t, "by first sight", [][]string{{`"p"`, `"c"`, `"b"`}, {`"p"`, `"c"`, `"d"`}}, texts(got.ByInput))
}

func TestEqualContextsFirst(t *testing.T) {
	api := compat.New(compat.Options{})
	first := do(t, api, "/reorder", object{"contexts": lists{{1, 2}, {2, 1}, {}}})
	check(t, "nodes", 2.0, first.Stats["num_nodes"])
	got := do(t, api, "/reorder", object{"contexts": lists{{3, 2, 1}}})
	check(t, "the next one finds them", [][]string{{"1", "2", "3"}}, texts(got.Reordered))
	gone := do(t, api, "/evict", object{"request_ids": first.RequestIDs[:1]})
	check(t, "removed", 1, gone.Removed)
	check(t, "the leaf stays for the other one", 0, len(gone.EvictedNodes))
	gone = do(t, api, "/evict", object{"request_ids": first.RequestIDs[1:]})
	check(t, "an empty context has an ID and no node", []any{1, 2}, []any{gone.Removed, len(gone.Evicted)})
}

// The input order is there in every incremental answer, if it is not the reference's shape that was asked for.
func TestReorderedByInputOfNothing(t *testing.T) {
	for _, published := range []bool{false, true} {
		api := compat.New(compat.Options{CompatIncrementalOrder: published})
		do(t, api, "/reorder", object{"contexts": lists{{1, 2}}})
		_, got, raw := ask(t.Context(), t, api, "", "/reorder", `{"contexts":[]}`)
		if got.Mode != "incremental" || bytes.Contains(raw, []byte(`"reordered_by_input":[]`)) == published {
			t.Errorf("compat %v: %s", published, raw)
		}
	}
}
