package memorytrace_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/memorytrace"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

func small(t *testing.T) ([]trace.Request, *trace.Blocks) {
	t.Helper()
	blocks, err := trace.NewBlocks(
		trace.Block{ID: "a", Text: "Ana keeps bees."}, trace.Block{ID: "b", Text: "Ana likes honey."},
		trace.Block{ID: "c", Text: "Bo keeps fish."}, trace.Block{ID: "d", Text: "Ana sold the bees."},
		trace.Block{ID: "unused", Text: "Nobody asks for this."})
	if err != nil {
		t.Fatal(err)
	}
	request := func(id, query string, docs ...string) trace.Request {
		return trace.Request{ID: id, Session: id, Turn: 1, Query: query, Docs: docs}
	}
	return []trace.Request{
		request("1", "What does Ana keep?", "a", "b"), request("2", "What does Bo keep?", "c"), request("3", "Does she still?", "d", "a"),
	}, blocks
}

// A turn's memories are those of the trace, in its order, under labels that say nothing but which text it is.
func TestRecorded(t *testing.T) {
	trc, blocks := small(t)
	p, err := memorytrace.New(t.Context(), trc, blocks, memorytrace.Options{K: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if len(p.Blocks) != 4 {
		t.Errorf("%d memories, want 4", len(p.Blocks))
	}
	text := map[string]string{}
	for _, b := range p.Blocks {
		text[b.ID] = b.Text
	}
	users := make([]string, 0, len(trc))
	for _, q := range trc {
		users = append(users, p.User(q))
		turn, err := p.Turn(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for i, label := range turn.Request.Docs {
			got = append(got, text[label])
			original, _ := blocks.Text(q.Docs[i])
			want = append(want, original)
			if !strings.HasPrefix(label, "m-") {
				t.Errorf("label %q", label)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("request %s recalls %q, want %q", q.ID, got, want)
		}
		sent := slices.Sorted(slices.Values(turn.Plan.Docs))
		if !slices.Equal(sent, slices.Sorted(slices.Values(turn.Request.Docs))) {
			t.Errorf("request %s sends %q of %q", q.ID, sent, turn.Request.Docs)
		}
	}
	if !slices.Equal(users, []string{"user-1", "user-2", "user-1"}) {
		t.Errorf("users %q", users)
	}
}

// The store's own search reaches nothing of other users.
func TestOwn(t *testing.T) {
	trc, blocks := small(t)
	p, err := memorytrace.New(t.Context(), trc, blocks, memorytrace.Options{K: 2, Own: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	turn, err := p.Turn(t.Context(), trc[0])
	if err != nil {
		t.Fatal(err)
	}
	if n := len(turn.Request.Docs); n != 2 {
		t.Errorf("%d memories, want 2", n)
	}
	for _, it := range turn.Full.Items {
		if text := turn.Full.RenderItem(it.Index); strings.Contains(text, "fish") {
			t.Errorf("another user's memory: %q", text)
		}
	}
}
