package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
)

var recorded = sync.OnceValues(func() ([]Recorded, error) { return All(context.Background()) })

func all(t *testing.T) []Recorded {
	t.Helper()
	r, err := recorded()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Each cause is planted at least twice, and with two clients.
func TestCauses(t *testing.T) {
	by := map[string]map[string]bool{}
	for _, c := range Cases() {
		for _, w := range c.Want {
			if by[w.Cause] == nil {
				by[w.Cause] = map[string]bool{}
			}
			client, _, _ := strings.Cut(c.Name, "-")
			by[w.Cause][client] = true
		}
	}
	for cause := range strings.FieldsSeq("clock random-id map-order tool-order tool-set edited-history document-order counter user-name " +
		"template whitespace image model salt") {
		if len(by[cause]) < 2 {
			t.Errorf("%s is planted with %d clients", cause, len(by[cause]))
		}
		delete(by, cause)
	}
	if len(by) > 0 {
		t.Errorf("unknown causes: %v", by)
	}
}

// A label names a place where the two bodies differ, in the way in which its cause makes bodies differ.
func TestLabels(t *testing.T) {
	for _, r := range all(t) {
		if r.Pairs == 0 && len(r.Want) == 0 {
			t.Errorf("%s expects nothing", r.Name)
		}
		for _, w := range r.Want {
			a, b := r.Bodies[w.Against-1], r.Bodies[w.Line-1]
			x, err := at(a, w.Path)
			if err != nil {
				t.Errorf("%s: %v", r.Name, err)
			}
			y, err := at(b, w.Path)
			if err != nil {
				t.Errorf("%s: %v", r.Name, err)
			}
			if x == nil && y == nil || bytes.Equal(x, y) {
				t.Errorf("%s: %s is alike in lines %d and %d: %s", r.Name, w.Path, w.Against, w.Line, x)
			}
			if ok, err := before(a, b, w.Path); !ok || err != nil {
				t.Errorf("%s: something in front of %s differs in lines %d and %d (%v)", r.Name, w.Path, w.Against, w.Line, err)
			}
			if why := unlike(a, b, x, y, w); why != "" {
				t.Errorf("%s: lines %d and %d: %s %s", r.Name, w.Against, w.Line, w.Path, why)
			}
		}
	}
}

// unlike says why two values do not differ as a cause makes them differ.
func unlike(a, b []byte, x, y json.RawMessage, w Label) string {
	switch w.Cause {
	case "document-order":
		p, q := paragraphs(x), paragraphs(y)
		if strings.Join(p, "") == strings.Join(q, "") || !slices.Equal(slices.Sorted(slices.Values(p)), slices.Sorted(slices.Values(q))) {
			return "has not the same documents in another order"
		}
	case "map-order":
		if !sameLetters(x, y) {
			return "has not the same contents in another order"
		}
	case "tool-order":
		if !sameLetters(list(a, w.Path), list(b, w.Path)) {
			return "is in a list of other tools"
		}
	case "tool-set":
		if sameLetters(list(a, w.Path), list(b, w.Path)) {
			return "is in a list of the same tools"
		}
	case "whitespace":
		if visible(x) != visible(y) {
			return "differs in more than whitespace"
		}
	case "template", "counter", "clock", "random-id", "user-name":
		if visible(x) == visible(y) || sameLetters(x, y) {
			return "differs in whitespace or order only"
		}
	}
	return ""
}

func list(body []byte, path string) json.RawMessage {
	v, _ := at(body, parent(path)) // an error gives nothing, which is like nothing
	return v
}

func sameLetters(a, b []byte) bool {
	x, y := slices.Sorted(slices.Values(bytes.ToLower(a))), slices.Sorted(slices.Values(bytes.ToLower(b)))
	return len(a) > 0 && bytes.Equal(x, y)
}

// paragraphs returns the long paragraphs of a text or of the texts of a list.
func paragraphs(raw json.RawMessage) (long []string) {
	for p := range strings.SplitSeq(strings.NewReplacer(`"text":"`, `\n\n`, `"}`, `\n\n`).Replace(string(raw)), `\n\n`) {
		if p = strings.Trim(p, `"`); len(p) > 150 && strings.Contains(p, ". ") {
			long = append(long, p)
		}
	}
	return long
}

func visible(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) {
			return -1
		}
		return c
	}, s)
}

// In a program without a fault each request begins as an earlier one, up to its questions, or is the first of its program.
func TestStable(t *testing.T) {
	pairs := 0
	for _, r := range all(t) {
		if len(r.Want) > 0 {
			continue
		}
		pairs += r.Pairs
		heads := map[string]string{} // by the first words of the system text
		for i, body := range r.Bodies {
			head, start := headOf(t, body)
			if before, ok := heads[start]; ok && before != head {
				t.Errorf("%s: what is in front of the questions of line %d changes: %.60q", r.Name, i+1, start)
			}
			heads[start] = head
		}
	}
	t.Logf("%d stable pairs in %d runs", pairs, len(all(t)))
	if pairs < 5000 {
		t.Errorf("%d stable pairs", pairs)
	}
}

// headOf returns what stands in front of the first question, and the first words of that.
func headOf(t *testing.T, body []byte) (head, start string) {
	t.Helper()
	var f map[string]json.RawMessage
	if err := json.Unmarshal(body, &f); err != nil {
		t.Fatal(err)
	}
	first, _ := at(body, "messages[0]") // absent in other APIs
	if !bytes.Contains(first, []byte(`"role":"system"`)) && !bytes.Contains(first, []byte(`"role":"developer"`)) {
		first = nil
	}
	text := string(f["system"]) + string(f["instructions"]) + string(f["systemInstruction"]) + string(first)
	for _, name := range []string{"tools", "model", "cache_salt", "prompt_cache_key"} {
		head += string(f[name]) + "\n"
	}
	return head + text, text[:min(len(text), 75)]
}

// The same bodies are recorded at every run.
func TestSameBodies(t *testing.T) {
	again, err := All(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range all(t) {
		for n, body := range r.Bodies {
			if !bytes.Equal(body, again[i].Bodies[n]) {
				t.Errorf("line %d of %s is not the same in a second run", n+1, r.Name)
			}
		}
	}
}
