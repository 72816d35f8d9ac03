package compat_test

import (
	"fmt"
	"reflect"

	"github.com/ragpilot/ragpilot/internal/testkit/wiretest"
)

// Reasons, as docs/compatibility.md has them.
const (
	executionOrder = "reordered_contexts is in execution order always; reordered_by_input is what the reference has there"
	realCounters   = "counters count: insertions by splits and merges too, and removals"
	permutation    = "a repeated document is kept: the answer is a permutation of the request"
	oneType        = "documents of one request are all integers or all strings"
	oneIDEach      = "each context has a request ID of its own"
	textOut        = "strings in, strings out"
	checkedFirst   = "what cannot be done is refused before anything is changed, and not by 500"
	everyMode      = "/deduplicate exists, in every mode"
	overlapToo     = "prefix_length is an overlap: overlap says so"
	hashOrder      = "the reference lists these in hash order"
	olderNames     = "recorded on an older revision, whose /build had other names; ours are those of the newer one"
)

// differences are all points where we do not answer as recorded.
var differences = concat(
	[]wiretest.Rule{
		{Endpoint: "GET /requests", At: "body/request_ids", Kind: wiretest.AnyOrder, Why: hashOrder, Example: "live/initial*"},
		{Endpoint: "POST /evict", At: "body/evicted_*", Kind: wiretest.AnyOrder, Why: hashOrder},
		{Endpoint: "POST /search", At: "body/overlap", Check: sameAs("prefix_length"), Why: overlapToo},
		{Endpoint: "POST /reorder", At: "body/reordered_by_input", Check: sameAs("reordered_contexts"), Why: executionOrder},
		ours("live/initial-incremental-evict-stats", 4, "body/reordered_contexts", executionOrder,
			lists{{8, 12, 40}, {1, 2, 3, 20}, {30, 31, 32}}),
		ours("live/incremental-batch-groups", 1, "body/reordered_contexts", executionOrder,
			lists{{11, 12, 13, 23, 24}, {1, 2, 3, 4, 20}, {1, 2, 3, 21, 22}, {30, 31, 32, 33, 34}, {30, 31, 32, 35, 36}}),

		ours("stateless/reorder-duplicate-doc-in-context", 0, "body/reordered_contexts", permutation, lists{{1, 2, 1}, {1, 2, 3}}),
		ours("stateless/reorder-duplicate-doc-in-context", 0, "body/scheduled_contexts", permutation, lists{{1, 2, 1}, {1, 2, 3}}),

		ours("stateless/reorder-linkage-bogus", 0, "status", checkedFirst, 422),
		ours("stateless/reorder-linkage-bogus", 0, "body/detail", checkedFirst, []object{{
			"type": "literal_error", "loc": list{"body", "linkage_method"}, "input": "bogus",
			"msg": "Input should be 'average', 'complete', 'single', 'weighted' or 'ward'",
			"ctx": object{"expected": "'average', 'complete', 'single', 'weighted' or 'ward'"},
		}}),
		ours("live/dedup-bad-hint-template", 1, "status", checkedFirst, 422),
		ours("live/dedup-bad-hint-template", 1, "body/detail", checkedFirst, []object{{
			"type": "value_error", "loc": list{"body", "hint_template"}, "input": "{nope}",
			"msg": "Value error, unknown placeholder {nope}", "ctx": object{"error": "unknown placeholder {nope}"},
		}}),

		ours("stateless/reorder-mixed-types", 0, "status", oneType, 422),
		ours("stateless/reorder-mixed-types", 0, "body", oneType, object{"detail": []object{
			{"type": "string_type", "loc": list{"body", "contexts", 0, 1}, "msg": "Input should be a valid string", "input": 1},
			{"type": "string_type", "loc": list{"body", "contexts", 1, 1}, "msg": "Input should be a valid string", "input": 2},
		}}),
		ours("stateless/reorder-mixed-types", 1, "status", oneType, 422),
		ours("stateless/reorder-mixed-types", 1, "body/detail", oneType, []object{
			{"type": "int_type", "loc": list{"body", "contexts", 0, 1}, "msg": "Input should be a valid integer", "input": "a"},
		}),

		ours("stateless/method-and-path-errors", 3, "status", everyMode, 200),
		ours("stateless/method-and-path-errors", 3, "body", everyMode, object{
			"status": "success", "message": "Deduplication completed", "request_ids": list{"<id1>"},
			"results": []object{{
				"request_id": "<id1>", "parent_request_id": nil, "original_docs": list{1}, "deduplicated_docs": list{1},
				"overlapping_docs": list{}, "new_docs": list{1}, "reference_hints": list{}, "is_new_conversation": true,
			}},
			"summary": object{"total_contexts": 1, "new_conversations": 1, "continued_conversations": 0, "total_docs_deduplicated": 0},
		}),

		ours("live/context-equal-to-an-intersection-null-id", 0, "body/request_ids", oneIDEach, list{"<id1>", "<id2>", "<id3>"}),
		ours(
			"live/context-equal-to-an-intersection-null-id",
			0,
			"body/request_id_mapping",
			oneIDEach,
			object{"<id1>": 0, "<id2>": 1, "<id3>": 2},
		),
		ours(
			"live/context-equal-to-an-intersection-null-id",
			0,
			"body/reordered_contexts",
			oneIDEach,
			lists{{1, 2, 3, 4}, {1, 2, 3, 5}, {1, 2, 3}},
		),
		ours("live/context-equal-to-an-intersection-null-id", 0, "body/stats/*_nodes", oneIDEach, 5),
		ours("live/context-equal-to-an-intersection-null-id", 0, "body/stats/num_requests", oneIDEach, 3),
		ours("live/duplicate-contexts-share-id", 0, "body/request_ids", oneIDEach, list{"<id1>", "<idB>", "<id2>"}),
		ours("live/duplicate-contexts-share-id", 0, "body/request_id_mapping", oneIDEach, object{"<id1>": 0, "<idB>": 0, "<id2>": 2}),
		ours("live/duplicate-contexts-share-id", 0, "body/stats/num_requests", oneIDEach, 3),
		ours("live/duplicate-contexts-share-id", 1, "body/num_requests", oneIDEach, 3),
		ours("live/duplicate-contexts-share-id", 1, "body/request_ids", oneIDEach, list{"<id1>", "<idB>", "<id2>"}),

		ours("deduplicate/after-build", 0, "body/scheduled_*", olderNames, wiretest.Absent),
		ours("deduplicate/after-build", 0, "body/reordered_contexts", olderNames, lists{{4, 3, 1}}),
		ours("deduplicate/after-build", 0, "body/original_indices", olderNames, list{0}),
		ours("deduplicate/after-build", 0, "body/deduplication/results/0/block*", olderNames, 0),
		ours("deduplicate/after-build", 0, "body/deduplication/total_blocks_deduped", olderNames, 0),
	},
	dedupStrings(0, list{jwt, pooling}, list{}, list{jwt, pooling}),
	dedupStrings(1, list{pooling, oauth}, list{pooling}, list{oauth}),
	[]wiretest.Rule{ours("live/dedup-strings", 1, "body/deduplication/results/0/reference_hints", textOut,
		list{"Please refer to [Doc " + pooling + "] from the previous conversation turn."})},
	counters("live/initial-incremental-evict-stats", map[int][2]int{4: {3, 0}, 5: {3, 0}, 7: {3, 2}}),
	counters("live/incremental-prefix-example", map[int][2]int{1: {1, 0}, 2: {2, 0}, 3: {3, 0}, 4: {4, 0}, 5: {4, 0}}),
	counters("live/incremental-batch-groups", map[int][2]int{1: {5, 0}, 2: {5, 0}}),
	counters("live/reorder-strings-two-calls", map[int][2]int{1: {1, 0}, 2: {2, 0}}),
	counters("live/evict-normalisation", map[int][2]int{7: {0, 3}}),
	counters("live/evict-all-then-reorder", map[int][2]int{2: {0, 2}, 3: {1, 2}, 4: {1, 2}}),
	counters("live/dedup-three-turns", map[int][2]int{1: {1, 0}, 2: {2, 0}}),
	counters("live/dedup-batch-and-unknown-parent", map[int][2]int{1: {2, 0}, 2: {3, 0}}),
	counters("live/dedup-evict-clears-chain", map[int][2]int{1: {1, 0}, 3: {2, 1}}),
)

type (
	object = map[string]any
	list   = []any
	lists  = [][]int
)

const (
	jwt     = "JWT token validation and rotation policy"
	pooling = "Database connection pooling and sharding"
	oauth   = "OAuth2 token refresh flow"
)

func ours(example string, step int, at, why string, want any) wiretest.Rule {
	return wiretest.Rule{Example: example, Steps: []int{step}, At: at, Want: want, Why: why}
}

// counters are our total_insertions and total_removals by step, where the reference has another number.
func counters(example string, steps map[int][2]int) (rules []wiretest.Rule) {
	for step, n := range steps {
		for i, name := range []string{"total_insertions", "total_removals"} {
			if n[i] > 0 {
				rules = append(rules, ours(example, step, "body/*stats/"+name, realCounters, n[i]))
			}
		}
	}
	return rules
}

// dedupStrings are the lists of a result whose documents are strings.
func dedupStrings(step int, original, overlapping, left list) (rules []wiretest.Rule) {
	for name, want := range map[string]list{
		"original_docs": original, "overlapping_docs": overlapping, "new_docs": left, "deduplicated_docs": left,
	} {
		if len(want) > 0 {
			rules = append(rules, ours("live/dedup-strings", step, "body/deduplication/results/0/"+name, textOut, want))
		}
	}
	return rules
}

// sameAs checks that a member of ours says what another one says in the recording.
func sameAs(member string) func(wiretest.Exchange, any) error {
	return func(x wiretest.Exchange, got any) error {
		if want := x.Recorded.(object)[member]; !reflect.DeepEqual(want, got) {
			return fmt.Errorf("got %v, want the recorded %s %v", got, member, want)
		}
		return nil
	}
}

func concat(lists ...[]wiretest.Rule) (all []wiretest.Rule) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
