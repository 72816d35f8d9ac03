package engines_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// docs makes blocks of 100 tokens of the words in list.
func docs(list string) []contextpilot.Block {
	var out []contextpilot.Block
	for id := range strings.FieldsSeq(list) {
		out = append(out, contextpilot.Block{ID: id, Text: "text of " + id, Tokens: 100})
	}
	return out
}

// order returns the labels of a plan's blocks.
func order(p contextpilot.Plan) string {
	var out []string
	for _, it := range p.Items {
		out = append(out, it.Label)
	}
	return strings.Join(out, " ")
}

// newRouter returns a router with replicas that are only routed to.
func newRouter(t testing.TB, o engines.RouterOptions, names ...string) (*engines.Router, *contextpilot.Pilot) {
	t.Helper()
	if o.Pilot == nil {
		pilot, err := contextpilot.New(contextpilot.Config{BlockSize: 1})
		if err != nil {
			t.Fatal(err)
		}
		o.Pilot = pilot
	}
	r, err := engines.NewRouter(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := r.Add(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	return r, o.Pilot
}

func route(t testing.TB, r *engines.Router, req contextpilot.Request, except ...string) *engines.Route {
	t.Helper()
	return testkit.Must(r.Route(req, except...))(t)
}

// serve routes a request and ends it at once, as an engine would that finds what the plan expects.
func serve(t testing.TB, r *engines.Router, req contextpilot.Request, except ...string) *engines.Route {
	t.Helper()
	rt := route(t, r, req, except...)
	rt.First()
	rt.Done(engines.Usage{PromptTokens: rt.Score.Match.Prompt, CachedTokens: rt.Plan.Prefix.Tokens, CachedKnown: true}, nil)
	return rt
}

func equal[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// loose lets prefill be as unequal as it likes.
var loose = engines.RouterOptions{MaxShare: 100}
