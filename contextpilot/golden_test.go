package contextpilot_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// blocks makes blocks of IDs; equal IDs are equal blocks.
func blocks(ids ...string) []contextpilot.Block {
	out := make([]contextpilot.Block, len(ids))
	for i, id := range ids {
		out[i] = contextpilot.Block{ID: id, Text: "text of " + id, Tokens: 32}
	}
	return out
}

func newPilot(t testing.TB, cfg contextpilot.Config) *contextpilot.Pilot {
	t.Helper()
	return testkit.Must(contextpilot.New(cfg))(t)
}

// sent returns the labels of the blocks sent in full, shown those of the references.
func sent(p contextpilot.Plan) string {
	var out []string
	for _, it := range p.Items {
		if it.Ref == nil {
			out = append(out, it.Label)
		}
	}
	return strings.Join(out, " ")
}

func refs(p contextpilot.Plan) string {
	var out []string
	for _, it := range p.Items {
		if it.Ref != nil {
			out = append(out, it.Ref.Label)
		}
	}
	return strings.Join(out, " ")
}

// seeing is a reference with the default note.
func seeing(label string, turn int, request string) contextpilot.Ref {
	note := strings.ReplaceAll(contextpilot.DefaultLocationNote, "{label}", label)
	return contextpilot.Ref{Label: label, Turn: turn, RequestID: request, Note: note}
}

// notes returns what the model reads beside the blocks.
func notes(p contextpilot.Plan) (lines []string) {
	for _, it := range p.Items {
		if it.Ref != nil && it.Ref.Note != "" {
			lines = append(lines, it.Ref.Note)
		}
	}
	if p.Hint != "" {
		lines = append(lines, p.Hint)
	}
	return lines
}

func equal[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Contexts of ContextPilot Fig. 5 and 6.
var paper = map[string][]string{
	"C1": {"2", "1", "3"}, "C2": {"2", "6", "1"}, "C3": {"4", "1", "0"},
	"C6": {"2", "1", "4"}, "C7": {"5", "7", "8"}, "C8": {"1", "2", "9"},
}

func fig5(t *testing.T, p *contextpilot.Pilot) contextpilot.Batch {
	t.Helper()
	var reqs []contextpilot.Request
	for _, id := range []string{"C1", "C2", "C3"} {
		reqs = append(reqs, contextpilot.Request{ID: id, Blocks: blocks(paper[id]...)})
	}
	b, err := p.PlanBatch(context.Background(), reqs)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPaperBatch(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Policy: "paper"})
	b := fig5(t, p)
	for i, want := range []string{"1 2 3", "1 2 6", "1 4 0"} {
		equal(t, fmt.Sprintf("C%d", i+1), want, sent(b.Plans[i]))
	}
	// C1 and C2 have the longer paths; all three share {1} and so one group.
	equal(t, "execution order", []int{0, 1, 2}, b.Order)
	equal(t, "groups", [][]int{{0, 1, 2}}, b.Groups)
	// The second to run finds {1, 2}, the third {1}.
	for i, want := range []int{0, 2, 1} {
		equal(t, fmt.Sprintf("expected blocks of C%d", i+1), want, b.Plans[i].Prefix.Blocks)
	}
}

func TestPaperNewContexts(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Policy: "paper"})
	fig5(t, p)
	for _, c := range []struct{ id, want string }{{"C6", "1 2 4"}, {"C7", "5 7 8"}, {"C8", "1 2 9"}} {
		got := p.Plan(contextpilot.Request{ID: c.id, Blocks: blocks(paper[c.id]...)})
		equal(t, c.id, c.want, sent(got))
		if c.id != "C7" {
			equal(t, c.id+": expected blocks", 2, got.Prefix.Blocks)
		}
	}
}

func TestPaperOrderNote(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Policy: "paper", Notes: contextpilot.Notes{Hint: contextpilot.HintFull, AlwaysHint: true}})
	batch := []contextpilot.Request{
		{ID: "C1", Blocks: blocks("Doc.2", "Doc.1", "Doc.3")},
		{ID: "C2", Blocks: blocks("Doc.2", "Doc.6", "Doc.1")},
		{ID: "C3", Blocks: blocks("Doc.4", "Doc.1", "Doc.0")},
	}
	if _, err := p.PlanBatch(context.Background(), batch); err != nil {
		t.Fatal(err)
	}
	c6 := p.Plan(contextpilot.Request{ID: "C6", Blocks: blocks("Doc.2", "Doc.1", "Doc.4")})
	equal(t, "C6", "Doc.1 Doc.2 Doc.4", sent(c6))
	equal(t, "note of §5.3", "Please read the context in the following priority order: [Doc.2] > [Doc.1] > [Doc.4] and answer the question.",
		c6.Hint)
	equal(t, "the note stands between blocks and question", true,
		strings.HasSuffix(c6.Prompt("Why?"), "text of Doc.4\n</doc>\n"+c6.Hint+"\nWhy?"))
	same := p.Plan(contextpilot.Request{ID: "C6 in order", Blocks: blocks("Doc.1", "Doc.2", "Doc.4")})
	equal(t, "no note for retrieval order", "", same.Hint)
}

// §6: the first turn shows {1, 2, 4}; of the second turn's {1, 5, 2} only 5 is new.
func TestPaperDedup(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Policy: "paper"})
	first := p.Plan(contextpilot.Request{ID: "t1", Session: "c6", Blocks: blocks("Doc_1", "Doc_2", "Doc_4")})
	equal(t, "turn 1", "Doc_1 Doc_2 Doc_4", sent(first))
	second := p.Plan(contextpilot.Request{
		ID: "t2", Session: "c6", Blocks: blocks("Doc_1", "Doc_5", "Doc_2"),
		Prior: []string{first.Prompt("first question"), "an answer"}, Behind: first.End,
	})
	equal(t, "turn 2", "Doc_5", sent(second))
	equal(t, "references of turn 2", "Doc_1 Doc_2", refs(second))
	for _, it := range second.Items[1:] {
		equal(t, "reference", seeing(it.Label, 1, "t1"), *it.Ref)
	}
	blocks, lines, err := readStrict(second.Context())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "shown in turn 2", []shownBlock{{"Doc_5", "text of Doc_5"}}, blocks)
	equal(t, "notes of §6", []string{
		"Please refer to [Doc_1] in the previous conversation.", "Please refer to [Doc_2] in the previous conversation.",
	}, lines)
}

// RAGCache++ Alg. 1: among cached children the best-ranked one is taken, however many requests the other serves.
func TestKnowledgeTreeFollowsRank(t *testing.T) {
	p := newPilot(t, contextpilot.Config{Policy: "knowledge-tree"})
	plan := func(id string, ids ...string) string {
		return sent(p.Plan(contextpilot.Request{ID: id, Blocks: blocks(ids...)}))
	}
	for i := range 9 {
		plan(fmt.Sprint("popular", i), "a", "x", fmt.Sprint("end", i))
	}
	plan("once", "b", "y")
	equal(t, "b ranks before a", "b c a", plan("q1", "c", "b", "a"))
	equal(t, "a ranks before b", "a c b", plan("q2", "c", "a", "b"))
	equal(t, "two steps, then retrieval order", "a x d e", plan("q3", "d", "e", "x", "a"))
	equal(t, "nothing cached", "u v", plan("q4", "u", "v"))
	p.Observe(contextpilot.Event{Kind: contextpilot.Gone, Request: "once"}, contextpilot.Event{Kind: contextpilot.Gone, Request: "q1"})
	equal(t, "b has left the cache", "a c b", plan("q5", "c", "b", "a"))
}
