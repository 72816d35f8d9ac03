package memory_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/memory"
)

// Facts that contradict each other end in the newest.
func TestReconcileContradiction(t *testing.T) {
	model := &fakeModel{}
	store := newStore(t, memory.Config{Extractor: memory.Reconcile(model)})
	model.answers = []string{`{"facts": ["Lives in Oslo", "Has a dog named Rex"]}`}
	mustAdd(t, store, "I live in Oslo with my dog Rex.")
	if len(model.asked) != 1 {
		t.Errorf("%d calls while nothing was stored, want 1", len(model.asked))
	}
	model.answers = []string{
		"Sure!\n```json\n{\"facts\": [\"Lives in Bergen\", \"The dog died\", \"Likes tea\",]}\n```",
		`{"facts": ["Lives in Bergen", "The dog Rex died", "Likes tea"]}`,
	}
	if _, err := store.Add(t.Context(), ana, said("x"), memory.AddOptions{}); !errors.Is(err, memory.ErrExtraction) {
		t.Errorf("a list that is no JSON = %v, want ErrExtraction", err)
	}
	model.answers = append(model.answers, `Here you are: {"memory": [
		{"id": 0, "event": "update", "text": "Lives in Bergen"},
		{"id": "1", "event": "DELETE"},
		{"event": "ADD", "text": "Likes tea"},
		{"id": "17", "event": "DELETE"},
		{"id": "-1", "event": "UPDATE", "text": "nonsense"},
		{"id": "m1", "event": "DELETE"},
		{"id": "0", "event": "NONE"}]}`)
	changes := mustAdd(t, store, "We moved to Bergen. Rex is dead. I drink tea now.")
	if diff := cmp.Diff([]string{"Lives in Bergen", "Likes tea"}, textsOf(t, store, ana)); diff != "" {
		t.Error(diff)
	}
	var events []memory.Event
	for _, c := range changes {
		events = append(events, c.Event)
	}
	if want := []memory.Event{memory.Updated, memory.Added, memory.Deleted}; !slices.Equal(events, want) {
		t.Errorf("events %v, want %v", events, want)
	}
	last := model.asked[len(model.asked)-1]
	want := "## Stored memories\n[0] Lives in Oslo\n[1] Has a dog named Rex\n\n## New facts\n- Lives in Bergen\n- The dog Rex " +
		"died\n- Likes tea"
	if last != want {
		t.Errorf("the second call asks\n%s\nwant\n%s", last, want)
	}
}

// What is said again after it had expired is found again, though a memory of something else became it.
func TestUpdateToExpired(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	model := &fakeModel{}
	store := newStore(t, memory.Config{Extractor: memory.Reconcile(model), Now: func() time.Time { now = now.Add(time.Second); return now }})
	model.answers = []string{`{"facts": ["Lives in Porto"]}`}
	if _, err := store.Add(t.Context(), ana, said("I am in Porto for an hour."),
		memory.AddOptions{ExpiresAt: now.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Hour)
	model.answers = []string{`{"facts": ["Lives in Lisbon"]}`}
	mustAdd(t, store, "I live in Lisbon.")
	model.answers = []string{`{"facts": ["Lives in Porto"]}`, `{"memory": [{"id": "0", "event": "UPDATE", "text": "Lives in Porto"}]}`}
	mustAdd(t, store, "I am back in Porto.")
	if diff := cmp.Diff([]string{"Lives in Porto"}, textsOf(t, store, ana)); diff != "" {
		t.Error(diff)
	}
}

// A model that fails in either call is an error, and what is stored stays.
func TestModelFails(t *testing.T) {
	for name, c := range map[string]struct {
		extractor func(memory.Model) memory.Extractor
		answers   []string
		cause     error
	}{
		"facts":           {memory.Reconcile, nil, errNoAnswer},
		"decisions":       {memory.Reconcile, []string{`{"facts": ["Likes tea"]}`}, errNoAnswer},
		"facts garbled":   {memory.Reconcile, []string{"I cannot do that."}, memory.ErrExtraction},
		"another key":     {memory.AddOnly, []string{`{"result": []}`}, memory.ErrExtraction},
		"add only":        {memory.AddOnly, nil, errNoAnswer},
		"add only, empty": {memory.AddOnly, []string{""}, memory.ErrExtraction},
		"too long":        {memory.AddOnly, []string{strings.Repeat("[", 2<<20)}, memory.ErrExtraction},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t, memory.Config{})
			mustAdd(t, store, "Lives in Oslo.")
			model := &fakeModel{answers: c.answers}
			changes, err := store.Add(t.Context(), ana, said("I like tea."), memory.AddOptions{Extractor: c.extractor(model)})
			if !errors.Is(err, c.cause) || !errors.Is(err, memory.ErrExtraction) || changes != nil {
				t.Errorf("%v, %v; want %v as ErrExtraction", changes, err, c.cause)
			}
			if diff := cmp.Diff([]string{"Lives in Oslo."}, textsOf(t, store, ana)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Add only sees what is known and what was said, and stores beside it.
func TestAddOnly(t *testing.T) {
	model := &fakeModel{answers: []string{
		`{"memory": [{"text": "Lives in Oslo", "attributed_to": "user"}]}`,
		`<think>maybe {"memory": [{"text": "draft"}]}</think>
		{"memory": [{"text": "Moved from Oslo to Bergen", "attributed_to": "User"}, "Was told to try the fish market", {"text": " "}, 7]}`,
	}}
	store := newStore(t, memory.Config{Extractor: memory.AddOnly(model)})
	mustAdd(t, store, "I live in Oslo.")
	_, err := store.Add(t.Context(), ana, []memory.Message{
		{Role: memory.System, Content: "Be brief."},
		{Role: memory.User, Content: "I moved to Bergen."},
		{Role: memory.Assistant, Content: "Try the fish market."},
	}, memory.AddOptions{Instructions: "Keep places."})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Lives in Oslo", "Moved from Oslo to Bergen", "Was told to try the fish market"}
	if diff := cmp.Diff(want, textsOf(t, store, ana)); diff != "" {
		t.Error(diff)
	}
	const prompt = "## Additional instructions\nKeep places.\n\n## Known memories\n[0] Lives in Oslo\n\n" +
		"## Earlier messages\nuser: I live in Oslo.\n\n## New messages\nuser: I moved to Bergen.\nassistant: Try the fish market."
	if diff := cmp.Diff(prompt, model.asked[1]); diff != "" {
		t.Error(diff)
	}
	if model.systems[0] != model.systems[1] {
		t.Error("the system prompt differs between calls: nothing of it can be reused")
	}
	if hits, err := store.Search(t.Context(), ana, "Bergen", 1, memory.SearchOptions{}); err != nil || len(hits) != 1 ||
		hits[0].Memory.Role != "user" {
		t.Errorf("found %+v, %v", hits, err)
	}
}

// Messages without anything to read ask no model.
func TestNothingToExtract(t *testing.T) {
	for _, extractor := range []memory.Extractor{memory.AddOnly(&fakeModel{}), memory.Reconcile(&fakeModel{})} {
		store := newStore(t, memory.Config{Extractor: extractor})
		changes, err := store.Add(t.Context(), ana, []memory.Message{{Role: memory.System, Content: "Hi"}, {Role: memory.User, Content: " "}},
			memory.AddOptions{})
		if err != nil || len(changes) != 0 {
			t.Errorf("%v, %v", changes, err)
		}
	}
}

// The rule of what is kept can be replaced, and an assistant's statements can be kept too.
func TestVerbatim(t *testing.T) {
	messages := []memory.Message{
		{Role: memory.System, Content: "I am a prompt."},
		{Role: memory.User, Content: "Hi! I'm Ana, I work at Siemens. What's the weather?", Name: "ana"},
		{Role: memory.Assistant, Content: "The office in Porto is sunny. Anything else?"},
		{Role: memory.Tool, Content: "What is 6 * 7? 42"},
		{Role: "narrator", Content: "Ana waits. Why?"},
	}
	loud := func(m memory.Message) string {
		if strings.Contains(m.Content, "!") {
			return m.Content
		}
		return ""
	}
	for name, c := range map[string]struct {
		extractor memory.Extractor
		want      []string
	}{
		"default":  {nil, []string{"I'm Ana, I work at Siemens.", "What is 6 * 7? 42", "Ana waits."}},
		"verbatim": {memory.Verbatim{}, []string{"I'm Ana, I work at Siemens.", "What is 6 * 7? 42", "Ana waits."}},
		"of assistant": {
			memory.Verbatim{Assistant: true},
			[]string{"I'm Ana, I work at Siemens.", "The office in Porto is sunny.", "What is 6 * 7? 42", "Ana waits."},
		},
		"own rule":   {memory.Verbatim{Keep: loud}, []string{messages[1].Content}},
		"everything": {memory.Everything{}, []string{messages[1].Content, messages[2].Content, messages[3].Content, messages[4].Content}},
	} {
		store := newStore(t, memory.Config{})
		changes, err := store.Add(t.Context(), ana, messages, memory.AddOptions{Extractor: c.extractor})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, textsOf(t, store, ana)); diff != "" || len(changes) != len(c.want) {
			t.Errorf("%s: %d changes, %s", name, len(changes), diff)
		}
		if m, err := store.Get(t.Context(), changes[0].ID); err != nil || m.Role != "user" || m.Actor != "ana" {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}
