package retriever_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/retriever"
	"github.com/ragpilot/ragpilot/retriever/passage"
)

// chunk is a chunk of a document, as text splitters and stores describe it.
func chunk(id, source string, number int, text string) schema.Document {
	return schema.Document{PageContent: text, Metadata: map[string]any{"id": id, "source": source, "chunk_index": number}}
}

func pumps() literal {
	return literal{
		chunk("x7", "pumps.pdf", 4, "Wait a minute before you open the valve. Then open it slowly."),
		chunk("x5", "pumps.pdf", 2, "Pumps move water. They start by themselves. Wait a minute before you"),
		chunk("x9", "motors.pdf", 0, "Motors drive pumps."),
		chunk("x6", "pumps.pdf", 3, "start by themselves. Wait a minute before you open the valve. Th"),
		chunk("y1", "copy.pdf", 0, "Motors drive pumps."),
	}
}

func TestPassages(t *testing.T) {
	for _, test := range []struct {
		name string
		opts passage.Options
		want []string
	}{
		{"cut", passage.Options{}, []string{
			"<doc x5>\nPumps move water. They start by themselves.\n</doc>",
			"<doc x7>\nWait a minute before you open the valve. Then open it slowly.\n</doc>",
			"<doc x9>\nMotors drive pumps.\n</doc>",
		}},
		{"join", passage.Options{Form: passage.Join}, []string{
			"<doc x5>\nPumps move water. They start by themselves. Wait a minute before you open the valve. Then open it slowly.\n</doc>",
			"<doc x9>\nMotors drive pumps.\n</doc>",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := retriever.Wrap(newPilot(t, contextpilot.Config{}), pumps(), retriever.WithPassages(test.opts))
			docs := get(context.Background(), t, r)
			got := texts(docs)
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			// What was retrieved is still there, each chunk with the name of the block that has its text.
			sources := retriever.Sources(docs)
			if diff := cmp.Diff(texts(pumps()), texts(sources)); diff != "" {
				t.Error(diff)
			}
			for _, d := range sources {
				label, _ := d.Metadata["ragpilot.label"].(string)
				if label == "" || d.Metadata["id"] != d.Metadata["ragpilot.block_id"] {
					t.Errorf("chunk %v: label %q, block %v", d.Metadata["id"], label, d.Metadata["ragpilot.block_id"])
				}
			}
			copied := sources[4].Metadata
			if copied["ragpilot.label"] != "x9" || copied["ragpilot.reason"] != "duplicate" {
				t.Errorf("a copy under another ID: %v", copied)
			}
			middle := sources[3].Metadata
			if middle["ragpilot.reason"] != "merged" {
				t.Errorf("a chunk whose neighbours have all of it: %v", middle)
			}
		})
	}
}

// A passage over the budget leaves out all of its chunks.
func TestPassagesOverBudget(t *testing.T) {
	pilot := newPilot(t, contextpilot.Config{})
	r := retriever.Wrap(pilot, pumps(), retriever.WithPassages(passage.Options{Form: passage.Join}), retriever.WithBudget(12))
	docs := get(context.Background(), t, r)
	if len(docs) != 1 {
		t.Fatalf("%d documents, want the one that fits", len(docs))
	}
	reasons := map[any]int{}
	for _, d := range retriever.Sources(docs) {
		reasons[d.Metadata["ragpilot.reason"]]++
	}
	if diff := cmp.Diff(map[any]int{nil: 1, "duplicate": 1, "over budget": 3}, reasons); diff != "" {
		t.Error(diff)
	}
}

func TestVersionedIDs(t *testing.T) {
	hash := passage.ContentVersion("Text.")
	for _, test := range []struct {
		name     string
		metadata map[string]any
		opts     []retriever.Option
		want     string
	}{
		{"all", map[string]any{"id": "77", "document": "a.pdf", "doc_version": 3, "chunk": 4.0}, nil, "a.pdf@3#4"},
		{"a store's version", map[string]any{"source": "a.pdf", "version": "ab12", "chunk_index": 0}, nil, "a.pdf@" + hash + "#0"},
		{"no version", map[string]any{"doc_id": "a", "chunk": 1}, nil, "a@" + hash + "#1"},
		{"no number", map[string]any{"id": "77", "source": "a.pdf"}, nil, "77"},
		{"in the ID", map[string]any{"id": "a@2#7"}, nil, "a@2#7"},
		{"no place", map[string]any{"id": "77"}, nil, "77"},
		{"marks in the name", map[string]any{"source": "a@b#c", "etag": "1", "chunk": 1}, nil, "a%40b%23c@1#1"},
		{"own keys", map[string]any{"file": "f", "rev": "9", "n": 2}, []retriever.Option{retriever.WithPlaces(retriever.Places{
			Document: []string{"file"}, Version: []string{"rev"}, Chunk: []string{"n"},
		})}, "f@9#2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inner := literal{{PageContent: "Text.", Metadata: test.metadata}}
			opts := append(test.opts, retriever.WithVersionedIDs())
			docs := get(context.Background(), t, retriever.Wrap(newPilot(t, contextpilot.Config{}), inner, opts...))
			if got := docs[0].Metadata["ragpilot.block_id"]; got != test.want {
				t.Errorf("ID %v, want %v", got, test.want)
			}
		})
	}
}

// Two stores have cut one version of a document differently. A label that both of its first chunks bear could not be cited.
func TestVersionedIDsNameOneText(t *testing.T) {
	short, long := chunk("q1", "pumps.pdf", 0, "Pumps move water."), chunk("e1", "pumps.pdf", 0, "Pumps move water. Motors drive them.")
	same := chunk("q2", "pumps.pdf", 1, "Motors drive them.")
	short.Metadata["etag"], long.Metadata["etag"], same.Metadata["etag"] = "1", "1", "1"
	found := retriever.Merge(literal{short, same}, literal{long, same})
	docs := get(context.Background(), t, retriever.Wrap(newPilot(t, contextpilot.Config{}), found, retriever.WithVersionedIDs()))
	labels := map[any]string{}
	for _, d := range retriever.Sources(docs) {
		label := d.Metadata["ragpilot.label"]
		if text, taken := labels[label]; taken || label == nil {
			t.Errorf("label %v stands for %q and %q", label, text, d.PageContent)
		}
		labels[label] = d.PageContent
	}
	if len(labels) != 3 || labels["pumps.pdf@1#1"] != "Motors drive them." {
		t.Errorf("labels %v, want three, and the chunk that both have under its own", labels)
	}
}

// A conversation was shown the first version of a document. Then the document changes: the next turn must show the second
// one in full, and only the turn after that may refer to it. What did not change becomes a reference.
func TestChangedDocumentIsNeverAStaleReference(t *testing.T) {
	text := map[string]string{"1": "The valve opens at 3 bar. Wait a minute.", "2": "The valve opens at 5 bar. Wait a minute."}
	for _, keyed := range []bool{true, false} {
		at := func(version string) literal {
			changing := chunk("c", "valves.pdf", 0, text[version])
			if keyed {
				changing.Metadata["etag"] = version
			}
			return literal{changing, chunk("d", "motors.pdf", 0, "Motors drive pumps.")}
		}
		pilot := newPilot(t, contextpilot.Config{})
		var prior []string
		var end contextpilot.Position
		for turn, version := range []string{"1", "1", "2", "2", "1"} {
			var plan contextpilot.Plan
			r := retriever.Wrap(pilot, at(version), retriever.WithVersionedIDs(), retriever.WithPassages(passage.Options{}),
				retriever.WithPlans(func(p contextpilot.Plan) { plan = p }))
			get(context.Background(), t, r)
			req := plan.Request() // as a model wrapper plans it again, with the messages that it sends
			req.ID, req.Prior, req.Behind = "", prior, end
			sent := pilot.Plan(req)
			end = sent.End
			prompt := sent.Prompt("When does it open?")
			full := strings.Contains(prompt, text[version])
			if first := turn == 0 || turn == 2; full != first {
				t.Errorf("keyed %v, turn %d, version %s: in full: %v, want %v\n%s", keyed, turn, version, full, first, prompt)
			}
			if other := text[map[string]string{"1": "2", "2": "1"}[version]]; strings.Contains(prompt, other) {
				t.Errorf("keyed %v, turn %d: the other version is shown\n%s", keyed, turn, prompt)
			}
			for _, it := range sent.Items {
				if it.Ref != nil && !strings.Contains(strings.Join(prior, ""), "<doc "+it.Ref.Label+">\n"+sent.Block(it.Index).Text+"\n</doc>") {
					t.Errorf("keyed %v, turn %d: reference to %s, which does not show the text", keyed, turn, it.Ref.Label)
				}
			}
			prior = append(prior, prompt, "An answer.")
		}
	}
}

// While an index is filled anew it has chunks of two versions. A passage made of both would say what no version says.
func TestJoinDoesNotMixVersions(t *testing.T) {
	old := chunk("c0", "valves.pdf", 0, "The valve opens at 3 bar. Wait a minute before you touch it.")
	now := chunk("c1", "valves.pdf", 1, "Wait a minute before you touch it. It closes at 5 bar.")
	old.Metadata["etag"], now.Metadata["etag"] = "1", "2"
	r := retriever.Wrap(newPilot(t, contextpilot.Config{}), literal{old, now}, retriever.WithPassages(passage.Options{Form: passage.Join}))
	if docs := get(context.Background(), t, r); len(docs) != 2 {
		t.Errorf("%q", texts(docs))
	}
}
