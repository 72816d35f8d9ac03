package compat_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/compat"
	"github.com/ragpilot/ragpilot/internal/testkit/wiretest"
)

// elsewhere are the examples that the proxy's tests replay, by pattern.
var elsewhere = []struct{ prefix, why string }{
	{"intercept/", "all steps are to /v1"},
	{"cloud/", "steps are to /v1 and /cloud"},
	{"live/chat-", "a step is to /v1/chat/completions"},
	{"live/completions-", "steps are to /v1/completions"},
	{"live/generic-v1", "all steps are to /v1"},
	{"live/metrics-ttft", "times come from two steps to /v1/chat/completions"},
	{"live/upstream-down", "all steps are to /v1"},
	{"stateless/chat-no-rid", "the step is to /v1/chat/completions"},
}

// cut are the examples whose last step is the proxy's and of which the steps before it are replayed here too.
var cut = map[string]string{
	"live/fresh-root-health-503":       "GET /cloud/stats",
	"stateless/method-and-path-errors": "DELETE /v1/models",
}

// TestReplay plays every recorded exchange of our endpoints and compares all of it.
func TestReplay(t *testing.T) {
	count, left := map[string]int{}, map[string]int{}
	runner := &wiretest.Runner{Rules: differences, Observe: sharesAsMuch, Start: func(t testing.TB, ex wiretest.Example, _ string) string {
		return wiretest.Serve(t, compat.New(compat.Options{Stateless: ex.Mode == "stateless"}))
	}}
	for _, ex := range wiretest.Examples(t) {
		if i := slices.IndexFunc(elsewhere, func(e struct{ prefix, why string }) bool { return strings.HasPrefix(ex.Name, e.prefix) }); i >= 0 {
			left[elsewhere[i].prefix]++
			if !ex.Uses("/v1", "/cloud") {
				t.Errorf("%s is left out (%s), but has only our steps", ex.Name, elsewhere[i].why)
			}
			continue
		}
		if last := len(ex.Steps) - 1; cut[ex.Name] != "" {
			if got := ex.Steps[last].Endpoint(); got != cut[ex.Name] {
				t.Errorf("%s ends with %s, not with %s", ex.Name, got, cut[ex.Name])
			}
			ex.Steps = ex.Steps[:last]
		}
		count["examples"]++
		count["steps"] += len(ex.Steps)
		t.Run(ex.Name, func(t *testing.T) { runner.Run(t, ex) })
	}
	runner.Unused(t)
	for _, e := range elsewhere {
		if left[e.prefix] == 0 {
			t.Errorf("no example %s…", e.prefix)
		}
	}
	if want := map[string]int{"examples": 45, "steps": 131}; fmt.Sprint(count) != fmt.Sprint(want) {
		t.Errorf("replayed %v, want %v", count, want)
	}
}

// sharesAsMuch checks that the engine's prefix cache gains at least what it would with the recorded answer: between
// requests that follow each other, and over all of them.
func sharesAsMuch(t testing.TB, ex wiretest.Example, step int, x wiretest.Exchange) {
	t.Helper()
	if !slices.Contains([]string{"/reorder", "/schedule", "/build"}, ex.Steps[step].Path) {
		return
	}
	recorded := x.Recorded.(object)
	if x.Status != http.StatusOK || ex.Steps[step].Status != http.StatusOK || recorded["reordered_contexts"] == nil {
		return
	}
	theirs := contexts(recorded["reordered_contexts"])
	if recorded["mode"] == "incremental" { // input order
		for i, at := range recorded["original_indices"].(list) {
			theirs[i] = contexts(recorded["reordered_contexts"])[int(at.(float64))]
		}
	}
	ours := contexts(x.Body.(object)["reordered_contexts"])
	if consecutive(ours) < consecutive(theirs) {
		t.Errorf("step %d: %d leading documents are shared with the request before, recorded %d", step, consecutive(ours), consecutive(theirs))
	}
	if inTrie(ours) < inTrie(theirs) {
		t.Errorf("step %d: a trie saves %d documents, recorded %d", step, inTrie(ours), inTrie(theirs))
	}
}

func contexts(v any) (out [][]string) {
	for _, c := range v.(list) {
		var docs []string
		for _, d := range c.(list) {
			docs = append(docs, fmt.Sprint(d))
		}
		out = append(out, docs)
	}
	return out
}

func consecutive(contexts [][]string) (shared int) {
	for i := 1; i < len(contexts); i++ {
		a, b := contexts[i-1], contexts[i]
		for k := 0; k < min(len(a), len(b)) && a[k] == b[k]; k++ {
			shared++
		}
	}
	return shared
}

// inTrie is how many documents need not be stored, as an earlier context began with the same ones.
func inTrie(contexts [][]string) (saved int) {
	seen := map[string]bool{}
	for _, c := range contexts {
		prefix := ""
		for _, d := range c {
			if prefix += d + "\x00"; seen[prefix] {
				saved++
			}
			seen[prefix] = true
		}
	}
	return saved
}
