package compat_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/compat"
)

// The reference pairs contexts in execution order with IDs and parents in input order: a conversation gets another one's
// documents as its history, and must not refer to what it was never shown.
func TestDedupPairsByInput(t *testing.T) {
	for _, kind := range []string{"initial", "incremental"} {
		t.Run(kind, func(t *testing.T) {
			api := compat.New(compat.Options{})
			if kind == "incremental" {
				do(t, api, "/reorder", object{"contexts": lists{{1, 2, 90}, {7, 8, 91}, {1, 2, 92}}})
			}
			sent := lists{{7, 8, 11}, {1, 2, 3}, {8, 7, 12}, {2, 1, 4}}
			first := do(t, api, "/reorder", object{"contexts": sent, "deduplicate": true, "parent_request_ids": make([]*string, 4)})
			if kind == "initial" {
				check(t, "the trap is set", []int{0, 2, 1, 3}, first.Indices)
			}
			for i, r := range first.Deduplication.Results {
				check(t, "ID", first.RequestIDs[i], r.RequestID)
				check(t, "as many documents", len(sent[i]), len(r.Original))
				for _, d := range sent[i] {
					if !containsNumber(r.Original, d) {
						t.Errorf("result %d is about %v, sent was %v", i, r.Original, sent[i])
					}
				}
			}
			for i, id := range first.RequestIDs {
				turn := do(t, api, "/reorder", object{
					"contexts": lists{append([]int{100 + i}, sent[i]...)}, "deduplicate": true, "parent_request_ids": []string{id},
				})
				check(t, "overlapping", len(sent[i]), len(turn.Deduplication.Results[0].Overlapping))
				check(t, "new", []any{float64(100 + i)}, turn.Deduplication.Results[0].New)
			}
		})
	}
}

func containsNumber(list []any, n int) bool {
	for _, x := range list {
		if x == float64(n) {
			return true
		}
	}
	return false
}

// Fewer parents than contexts: the others begin conversations. The reference leaves their results out.
func TestDedupParentsMissing(t *testing.T) {
	api := compat.New(compat.Options{})
	first := do(t, api, "/reorder", object{"contexts": lists{{1, 2}, {3, 4}}, "deduplicate": true})
	got := do(t, api, "/reorder", object{
		"contexts": lists{{1, 5}, {3, 6}}, "deduplicate": true, "parent_request_ids": first.RequestIDs[:1],
	})
	check(t, "results", 2, len(got.Deduplication.Results))
	check(t, "with a parent", []any{1.0}, got.Deduplication.Results[0].Overlapping)
	check(t, "without", []any{3.0, 6.0}, got.Deduplication.Results[1].New)
}

// An answer reports de-duplication if it was asked for, also where nothing was found.
func TestDedupOfNothing(t *testing.T) {
	api := compat.New(compat.Options{})
	got := do(t, api, "/reorder", object{"contexts": lists{}, "deduplicate": true})
	check(t, "results", true, got.Deduplication.Results != nil && len(got.Deduplication.Results) == 0)
}

func TestBadHintChangesNothing(t *testing.T) {
	api := compat.New(compat.Options{})
	body := object{"contexts": lists{{1, 2}}, "deduplicate": true, "hint_template": "see {where}"}
	code, _, _ := ask(t.Context(), t, api, "", "/reorder", body)
	check(t, "status", http.StatusUnprocessableEntity, code)
	check(t, "index", false, api.HasIndex(""))
	body["deduplicate"] = false // as the reference: nobody looks at it
	do(t, api, "/reorder", body)
	check(t, "turns", 0, api.Sizes("").Turns)
}

// A template is repeated for each document that was shown: neither a long one nor long documents make an answer that is much
// longer than its request, and what is refused has changed nothing.
func TestHintsAreBounded(t *testing.T) {
	api := compat.New(compat.Options{})
	document := strings.Repeat("x", 400_000)
	first := do(t, api, "/reorder", object{"contexts": [][]string{{document}}, "deduplicate": true})
	next := func(template string, parent any) object {
		return object{
			"contexts": [][]string{{document}}, "deduplicate": true, "parent_request_ids": []any{parent}, "hint_template": template,
		}
	}
	before := api.Sizes("")
	for _, path := range []string{"/reorder", "/deduplicate"} {
		code, _, raw := ask(t.Context(), t, api, "", path, next(strings.Repeat("é", 4097), first.RequestIDs[0]))
		if code != http.StatusUnprocessableEntity ||
			!bytes.HasPrefix(
				raw,
				[]byte(
					`{"detail":[{"type":"string_too_long","loc":["body","hint_template"],"msg":"String should have at most 4096 characters","input":"é`,
				),
			) ||
			!bytes.Contains(raw, []byte(`"ctx":{"max_length":4096}`)) {
			t.Errorf("%s, a long template: %d %.200s", path, code, raw)
		}
		code, got, raw := ask(t.Context(), t, api, "", path, next(strings.Repeat("{doc_id}", 400), first.RequestIDs[0]))
		if code != http.StatusRequestEntityTooLarge ||
			string(got.Detail) != `"hint_template: hints of up to 160004002 bytes, at most 134217728 are allowed"` {
			t.Errorf("%s, a long answer: %d, %d bytes: %.200s", path, code, len(raw), raw)
		}
		check(t, path+": nothing is changed", before, api.Sizes(""))
	}
	longest := next(strings.Repeat("é", 4096), first.RequestIDs[0])
	check(t, "characters are counted", 1, len(do(t, api, "/deduplicate", longest).Results[0].Hints))
	do(t, api, "/deduplicate", next(strings.Repeat("{doc_id}", 400), nil)) // a conversation that begins has no hints
	unused := next(strings.Repeat("x", 5000), nil)
	unused["deduplicate"] = false
	do(t, api, "/reorder", unused) // nobody looks at it
}

// Braces in templates are written as Python has them.
func TestBracesInHints(t *testing.T) {
	api := compat.New(compat.Options{})
	parents := do(t, api, "/deduplicate", `{"contexts":[[7]],"parent_request_ids":[null]}`).RequestIDs
	body := object{"contexts": lists{{7}}, "parent_request_ids": parents, "hint_template": `{{"see": {doc_id}}}`}
	check(t, "hints", []string{`{"see": 7}`}, do(t, api, "/deduplicate", body).Results[0].Hints)
	body["hint_template"] = "see {doc_id"
	code, _, raw := ask(t.Context(), t, api, "", "/deduplicate", body)
	if code != http.StatusUnprocessableEntity || !bytes.Contains(raw, []byte(`"msg":"Value error, single {, where {{ is a brace"`)) {
		t.Errorf("%d %s", code, raw)
	}
}

func TestDeduplicateStrings(t *testing.T) {
	api := compat.New(compat.Options{Stateless: true})
	first := do(t, api, "/deduplicate", object{"contexts": [][]string{{"a", "b", "a"}}, "parent_request_ids": []any{nil}})
	check(t, "nothing is lost", []any{"a", "b", "a"}, first.Results[0].New)
	got := do(t, api, "/deduplicate", object{
		"contexts": [][]string{
			{"b", "c", "b"},
		}, "parent_request_ids": first.RequestIDs, "hint_template": "{doc_id}@{turn_number} {source_request}",
	})
	check(t, "new", []any{"c"}, got.Results[0].New)
	check(t, "overlapping", []any{"b", "b"}, got.Results[0].Overlapping)
	check(t, "hints", []string{"b@1 " + first.RequestIDs[0], "b@1 " + first.RequestIDs[0]}, got.Results[0].Hints)
}

// Evicting a turn forgets its chain up to the first turn, not its sisters and not what came after it.
func TestEvictForgetsConversation(t *testing.T) {
	api := compat.New(compat.Options{})
	turn := func(docs []int, parent any) string {
		return do(t, api, "/reorder", object{"contexts": lists{docs}, "deduplicate": true, "parent_request_ids": []any{parent}}).RequestIDs[0]
	}
	one := turn([]int{1, 2}, nil)
	two := turn([]int{1, 3}, one)
	three := turn([]int{1, 4}, two)
	other := turn([]int{9}, nil)
	check(t, "cleared", 2, do(t, api, "/evict", object{"request_ids": []string{two}}).Cleared)
	check(t, "left", 2, api.Sizes("").Turns)
	check(t, "cleared", 2, do(t, api, "/evict", object{"request_ids": []string{three, other, one}}).Cleared)
}
