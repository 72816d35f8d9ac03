package llamacpp

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Once the true length of a slot is known, what is certain of its tokens follows.
func TestSettled(t *testing.T) {
	old, failed := []token{1, 2, 3, 4, 5}, []token{1, 2, 8, 9}
	for _, test := range []struct {
		name   string
		slot   slot
		length int
		want   []token
		ok     bool
	}{
		{"as believed", slot{tokens: old, length: 5}, 5, old, true},
		{"longer than was known", slot{tokens: old, length: -1}, 9, old, true},
		{"shorter than was certain", slot{tokens: old, length: -1}, 3, nil, false},
		{"used by others", slot{tokens: old, length: 5}, 7, nil, false},
		{"emptied", slot{tokens: old, length: 5}, 0, nil, false},
		{"the failed request never began", slot{tokens: old, length: 5, other: failed}, 5, old, true},
		{"it read a part", slot{tokens: old, length: 5, other: failed}, 3, failed[:3], true},
		{"it began to answer", slot{tokens: old, length: 5, other: failed}, 6, failed, true},
		{"it was stopped where both agree", slot{tokens: old, length: 5, other: failed}, 1, old[:1], true},
		{"both have that length", slot{tokens: old[:4], length: 4, other: failed}, 4, old[:2], true},
		{"the length before is not known", slot{tokens: old, length: -1, other: failed}, 7, old[:2], true},
		{"of a prompt that is not known", slot{tokens: old, length: 5, other: []token{}}, 8, nil, true},
	} {
		got, ok := test.slot.settled(test.length)
		if ok != test.ok || !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, %v; want %v, %v", test.name, got, ok, test.want, test.ok)
		}
	}
}

// The choice among free slots, with the server's details: the share must be above the similarity, of equal shares the
// first slot wins, of equally old ones the last.
func TestChoose(t *testing.T) {
	prompt := []token{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	busy := &lease{}
	for _, test := range []struct {
		name       string
		slots      []slot
		similarity float32
		want       int
	}{
		{"fresh", []slot{{}, {}, {}}, 0.1, 2},
		{"largest share", []slot{{tokens: prompt[:3], used: 1}, {tokens: prompt[:5], used: 2}, {}}, 0.1, 1},
		{"equal shares", []slot{{}, {tokens: prompt[:3], used: 2}, {tokens: prompt[:3], used: 1}}, 0.1, 1},
		{"not above", []slot{{tokens: prompt[:1], used: 2}, {used: 1}}, 0.1, 1},
		{"above", []slot{{tokens: prompt[:2], used: 2}, {used: 1}}, 0.1, 0},
		{"busy", []slot{{tokens: prompt[:5], used: 1, lease: busy}, {used: 3}, {used: 2}}, 0.1, 2},
		{"all busy", []slot{{lease: busy}}, 0.1, -1},
		{"similarity off", []slot{{tokens: prompt, used: 2}, {used: 1}}, 0, 1},
		{"in doubt", []slot{{tokens: prompt[:5], other: []token{}, used: 1}, {tokens: prompt[:2], used: 2}}, 0.1, 1},
	} {
		if got := choose(test.slots, prompt, test.similarity); got != test.want {
			t.Errorf("%s: slot %d, want %d", test.name, got, test.want)
		}
	}
}

// Generated tokens are known by their place; of those after a gap none is certain, until the text fills it.
func TestRecord(t *testing.T) {
	for _, test := range []struct {
		name  string
		given map[int]token // by place
		count int
		text  []token
		want  []token
	}{
		{"all given: the last was not read", map[int]token{0: 5, 1: 6, 2: 7}, 3, nil, []token{5, 6}},
		{"the end token is not given", map[int]token{0: 5, 1: 6}, 3, nil, []token{5, 6}},
		{"a gap", map[int]token{0: 5, 2: 7, 3: 8}, 4, nil, []token{5}},
		{"a gap that the text fills", map[int]token{0: 5, 2: 7, 3: 8}, 4, []token{5, 6, 7, 8}, []token{5, 6, 7}},
		{"with an end token", map[int]token{0: 5, 2: 7}, 4, []token{5, 6, 7}, []token{5, 6, 7}},
		{"text of other tokens", map[int]token{0: 5, 2: 7, 3: 8}, 4, []token{5, 6, 9, 8}, []token{5}},
		{"text of another length", map[int]token{0: 5, 2: 7, 3: 8}, 4, []token{5, 7, 8, 8, 8}, []token{5}},
		{"nothing generated", nil, 0, nil, nil},
		{"nothing given", nil, 3, nil, nil},
	} {
		r := newRecord()
		r.count = test.count
		for place, id := range test.given {
			r.put(place, id)
		}
		r.fill(test.text)
		if got := r.kept(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	r := newRecord()
	r.put(0, 5)
	r.put(0, 6)
	r.put(1, 7)
	if got := r.kept(); len(got) != 0 {
		t.Errorf("two tokens for one place: %v is certain", got)
	}
}

func FuzzRecord(f *testing.F) {
	for _, chunk := range []string{
		`{"choices":[{"delta":{"content":"s"},"logprobs":{"content":[{"id":120}]}}],"timings":{"cache_n":13,"predicted_n":1}}`,
		`{"choices":[{"finish_reason":"length","delta":{}}],"__verbose":{"id_slot":1,"tokens_cached":17}}`,
		`{"choices":[],"timings":{"predicted_n":99999999999}}`, `{"choices":[{"logprobs":null}]}`, `[]`, ``,
	} {
		f.Add([]byte(chunk), []byte(chunk))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		r := newRecord()
		r.add(first)
		r.add(second)
		if kept := r.kept(); slices.Contains(kept, unknown) || len(kept) > max(r.count, 0) {
			t.Errorf("kept %v of %d tokens", kept, r.count)
		}
	})
}

func FuzzMetrics(f *testing.F) {
	f.Add([]byte("# HELP a b\n# TYPE a counter\nllamacpp:prompt_tokens_total 12\nx{position=\"0\"} 1e3\nbad\nllamacpp:y NaN\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name := range parseMetrics(data) {
			if name != "" && name[0] == '#' {
				t.Errorf("a comment is a metric: %q", name)
			}
		}
	})
}

func TestMetrics(t *testing.T) {
	got := parseMetrics([]byte("# HELP a b\nllamacpp:prompt_tokens_total 12\nx{position=\"0\"} 1e3\nbad\n"))
	if len(got) != 2 || got[PromptTokens] != 12 || got[`x{position="0"}`] != 1000 {
		t.Errorf("%v", got)
	}
}

func TestOptions(t *testing.T) {
	for body, want := range map[string]options{
		`{}`:                              {slot: -1, reuse: true, simple: true},
		`{"id_slot":2}`:                   {slot: 2, reuse: true, simple: true},
		`{"id_slot":-1,"n":1}`:            {slot: -1, reuse: true, simple: true},
		`{"cache_prompt":false,"n":2}`:    {slot: -1},
		`{"lora":[{"id":0,"scale":0.5}]}`: {slot: -1, reuse: true},
		`{"id_slot":"x"}`:                 {slot: -1, reuse: true, simple: true},
	} {
		var extra map[string]json.RawMessage
		if err := json.Unmarshal([]byte(body), &extra); err != nil {
			t.Fatal(err)
		}
		if got := readOptions(extra); got != want {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
}

// A request with a salt that may have begun leaves its slot to no file.
func TestFailedPrivate(t *testing.T) {
	for _, begins := range []bool{true, false} {
		b := book{tracker: newTracker(10)}
		b.restart("p", 1)
		l := &lease{prompt: []token{1, 2, 3}, private: true}
		if !b.grant(l, 0) {
			t.Fatal("no slot")
		}
		if begins {
			b.begin(l, 0)
		}
		b.failed(l, 0, l.prompt)
		b.settle(0, 3)
		if s := b.slots[0]; !s.private {
			t.Errorf("begun: %v; slot %+v", begins, s)
		}
	}
}

// What a slot loses may lie in another one: of each request there stays what the better of the two has, never more than
// was its own.
func TestCutMovesToBetterSlot(t *testing.T) {
	b := book{similarity: 0.1, tracker: newTracker(10)}
	b.restart("p", 3)
	b.slots[0].set([]token{1, 2, 3, 4, 5, 6}, 6)
	b.tracker.enter(b.slots, "short", 0, 2, 2)
	b.tracker.enter(b.slots, "middle", 0, 3, 3)
	b.tracker.enter(b.slots, "long", 0, 6, 6)
	running, next := &lease{prompt: []token{1, 2, 3, 4, 9}}, &lease{prompt: []token{1, 2, 8}}
	if !b.grant(running, 1) || !b.grant(next, 0) {
		t.Fatal("no slot")
	}
	b.begin(running, 1)
	b.begin(next, 0)
	want := []contextpilot.Event{{Kind: contextpilot.Shrunk, Request: "long", Tokens: 4, Prompt: 6}}
	if got := b.take(); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	for id, want := range map[string]holder{"short": {"short", 0, 2, 2}, "middle": {"middle", 1, 3, 3}, "long": {"long", 1, 4, 6}} {
		h, _ := b.tracker.byID.Get(id)
		if got := *h; got != want {
			t.Errorf("%s: %+v, want %+v", id, got, want)
		}
	}
}
