package citation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/citation"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/prompt/markup"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

type fataler interface {
	Helper()
	Fatal(args ...any)
}

func newPilot(t fataler) *contextpilot.Pilot {
	t.Helper()
	return testkit.Must(contextpilot.New(contextpilot.Config{}))(t)
}

func block(id, text string) contextpilot.Block { return contextpilot.Block{ID: id, Text: text} }

// documents says in short what a label stands for: ID, rank and turn.
func documents(r citation.Resolver, label string) (out []string) {
	s, ok := r.Resolve(label)
	if !ok {
		return nil
	}
	for _, d := range s.Documents {
		out = append(out, fmt.Sprintf("%s#%d/%d", d.Block.ID, d.Rank, d.Turn))
	}
	return out
}

func TestSources(t *testing.T) {
	pilot, sources := newPilot(t), citation.NewSources()
	var prior []string
	var ids []string
	var end contextpilot.Position
	ask := func(blocks ...contextpilot.Block) {
		plan := pilot.Plan(contextpilot.Request{Session: "s", Blocks: blocks, Prior: prior, Behind: end, Query: "?"})
		end = plan.End
		prior = append(prior, plan.Prompt("?"), "Yes.")
		ids = append(ids, plan.RequestID)
		sources.Add(plan)
	}
	check := func(what string, want map[string][]string) {
		t.Helper()
		for label, docs := range want {
			if diff := cmp.Diff(docs, documents(sources, label)); diff != "" {
				t.Errorf("%s: [%s] (-want +got):\n%s", what, label, diff)
			}
		}
	}
	pump, valve := "All about pumps.", "All about valves."
	ask(block("pump", pump), block("valve", valve), block("copy", pump))
	check("repeats are merged", map[string][]string{
		"pump": {"pump#1/1", "copy#3/1"}, "valve": {"valve#2/1"}, "copy": nil, "other": nil,
	})
	ask(block("motor", "All about motors."), block("valve", valve), block("mirror", pump))
	check("references lead to the turn that showed the block", map[string][]string{
		"pump": {"pump#1/1", "copy#3/1", "mirror#3/2"}, "mirror": {"pump#1/1", "copy#3/1", "mirror#3/2"},
		"valve": {"valve#2/1"}, "motor": {"motor#1/2"},
	})
	ask(block("valve", valve+" Edited."))
	check("a changed text is another document", map[string][]string{"valve": {"valve#1/3"}, "pump": {"pump#1/1", "copy#3/1", "mirror#3/2"}})
	sources.Remove(ids[2])
	check("a plan that was not sent is forgotten", map[string][]string{"valve": {"valve#2/1"}})
	sources.Remove(ids[0])
	check("the showing turn is not known any more", map[string][]string{"valve": {"valve#2/2"}, "pump": {"mirror#3/2"}})

	few := citation.NewSourcesOf(1)
	for _, id := range []string{"a", "b"} {
		few.Add(pilot.Plan(contextpilot.Request{Blocks: []contextpilot.Block{block(id, id)}}))
	}
	if documents(few, "a") != nil || documents(few, "b") == nil {
		t.Errorf("of one plan: a %v, b %v", documents(few, "a"), documents(few, "b"))
	}
}

// In any conversation, cut or not, each label that the model sees in a turn stands for one document: one that was retrieved with the
// very text that the label shows, and whose own label it is.
func TestLabelsOfAnyConversation(t *testing.T) {
	type message struct {
		plan *contextpilot.Plan
		text string
	}
	rapid.Check(t, func(t *rapid.T) {
		pilot, sources := newPilot(t), citation.NewSources()
		var messages []message
		seen := map[string]string{} // label → text as shown last
		for range rapid.IntRange(1, 12).Draw(t, "turns") {
			messages = messages[2*rapid.SampledFrom([]int{0, 0, len(messages) / 4}).Draw(t, "turns that are cut"):]
			var prior []string
			var end contextpilot.Position
			for _, m := range messages {
				prior, end = append(prior, m.text), pilot.Behind(end, m.plan, m.text)
			}
			plan := pilot.Plan(contextpilot.Request{Session: "s", Query: "Why?", Blocks: drawBlocks(t), Prior: prior, Behind: end})
			sources.Add(plan)
			messages = append(messages, message{&plan, plan.Prompt("Why?")}, message{nil, "Because."})
			for _, m := range messages {
				for r := range markup.Regions(m.text) {
					seen[r.Label] = r.Text
				}
			}
			for _, it := range plan.Items {
				label := it.Label
				if it.Ref != nil {
					label = it.Ref.Label
				}
				checkLabel(t, sources, &plan, it, label, seen[label])
			}
		}
	})
}

func checkLabel(t *rapid.T, sources *citation.Sources, plan *contextpilot.Plan, it contextpilot.Item, label, text string) {
	t.Helper()
	cited := citation.Find(sources, "It is so ["+label+"].")
	if len(cited) != 1 || len(cited[0].Documents) == 0 {
		t.Fatalf("[%s]: %+v", label, cited)
	}
	first := cited[0].Documents[0]
	if first.Block.Text != text || text != plan.Block(it.Index).Text {
		t.Fatalf("[%s] stands for %q, but shows %q", label, first.Block.Text, text)
	}
	if first.Block.ID != "" && !strings.HasPrefix(label, "~") && first.Block.ID != label {
		t.Fatalf("[%s] stands for document %q", label, first.Block.ID)
	}
	if it.Ref == nil && (first.RequestID != plan.RequestID || first.Rank != it.Index+1) {
		t.Fatalf("[%s], shown in this turn at rank %d: %+v", label, it.Index+1, first)
	}
	if it.Ref != nil && first.RequestID == plan.RequestID {
		t.Fatalf("[%s], shown in an earlier turn: %+v", label, first)
	}
	for _, d := range cited[0].Documents {
		if d.Block.Text != text {
			t.Fatalf("[%s] was merged with %q", label, d.Block.Text)
		}
	}
	same := 0
	for i := range plan.Len() {
		if plan.Block(i).Text == text {
			same++
		}
	}
	now := slices.DeleteFunc(slices.Clone(cited[0].Documents), func(d citation.Document) bool { return d.RequestID != plan.RequestID })
	if it.Ref == nil && len(now) != same {
		t.Fatalf("[%s]: %d documents of this turn say the same, %d are cited", label, same, len(now))
	}
}

func drawBlocks(t *rapid.T) (blocks []contextpilot.Block) {
	used := map[string]string{}
	for range rapid.IntRange(0, 5).Draw(t, "blocks") {
		id := rapid.SampledFrom([]string{"a", "b,c", "b", "c;d", "guide.md#3", ""}).Draw(t, "id")
		text := fmt.Sprint("text ", rapid.IntRange(0, 4).Draw(t, "text"))
		if was, ok := used[id]; ok && id != "" && was != text {
			continue // an ID with two texts in one request is the retriever's to avoid
		}
		used[id] = text
		blocks = append(blocks, contextpilot.Block{ID: id, Text: text})
	}
	return blocks
}
