package residency_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/residency"
)

// line is one of a recorded trace: a request or an insertion into the cache, an event message, or what a plugin
// inside the engine posted.
type line struct {
	K, ID, Payload string
	Tokens         []int
	Cached         int
	Salt           string `json:"cache_salt"`
	Body           struct {
		RequestIDs []string `json:"request_ids"`
		Prefixes   []struct {
			RequestID string `json:"request_id"`
			Resident  int    `json:"resident_tokens"`
		}
	}
}

func readTrace(t *testing.T, name string) []line {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []line
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if bytes.Contains(sc.Bytes(), []byte(`"k":"evict_call"`)) { // has a number of tokens
			continue
		}
		var l line
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// applyHex applies a recorded message.
func applyHex(t *testing.T, d *kvevents.Decoder, x *residency.Index, payload string) {
	t.Helper()
	b, err := hex.DecodeString(payload)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := d.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if batch.Unknown+batch.Malformed > 0 {
		t.Errorf("%d unknown and %d malformed events", batch.Unknown, batch.Malformed)
	}
	x.Apply(batch)
}

// replay plays a trace and returns the requests that lost everything, in order, and all updates.
func replay(t *testing.T, lines []line, x *residency.Index) {
	t.Helper()
	var d kvevents.Decoder
	for _, l := range lines {
		switch l.K {
		case "request", "insert":
			x.Register(l.ID, l.Tokens, residency.Key{Salt: l.Salt})
			x.Served(l.ID)
		case "event":
			applyHex(t, &d, x, l.Payload)
		}
	}
}

// TestRecordedVLLM: from the messages that a vLLM 0.32.0 server sent, the index works out exactly what a plugin in
// that server's scheduler reported: which requests lost all blocks, and what remained of the others.
func TestRecordedVLLM(t *testing.T) {
	lines := readTrace(t, "trace-vllm-0.32.0.jsonl")
	var lost, theirs []string
	left := map[string][]int{}
	x := residency.New(residency.Config{OnUpdate: func(us []residency.Update) {
		for _, u := range us {
			switch {
			case u.Cleared != 0:
			case u.Lost:
				lost = append(lost, u.RequestID)
			default:
				left[u.RequestID] = append(left[u.RequestID], u.Resident)
			}
		}
	}})
	x.Complete(true)
	replay(t, lines, x)
	for _, l := range lines {
		theirs = append(theirs, l.Body.RequestIDs...)
		for _, p := range l.Body.Prefixes {
			if !slices.Contains(left[p.RequestID], p.Resident) {
				t.Errorf("%s: the plugin saw %d tokens left, the index %v", p.RequestID, p.Resident, left[p.RequestID])
			}
		}
	}
	slices.Sort(lost)
	slices.Sort(theirs)
	if len(theirs) == 0 || !slices.Equal(lost, theirs) {
		t.Errorf("lost %v, the plugin said %v", lost, theirs)
	}
	if s := x.Stats(); s.Unknown+s.Orphans+s.Conflicts+s.HashesOnly+s.Foreign > 0 || !s.Complete {
		t.Errorf("%+v", s)
	}
}

// TestRecordedHits: what the index says of a prompt before it is sent is what the engine then reported as cached.
func TestRecordedHits(t *testing.T) {
	lines := readTrace(t, "trace-vllm-0.32.0.jsonl")
	var d kvevents.Decoder
	x := residency.New(residency.Config{})
	said := map[string]int{}
	for i, l := range lines {
		switch l.K {
		case "note": // the recorder writes one before it sends requests
			for _, m := range lines[i:] {
				if m.K != "request" {
					continue
				}
				if m.ID == "req-a2" || len(said) < 6 {
					said[m.ID] = min(x.Prefix(m.Tokens, residency.Key{Salt: m.Salt}), (len(m.Tokens)-1)/32*32)
				}
				break
			}
		case "event":
			applyHex(t, &d, x, l.Payload)
		case "request":
			if want, ok := said[l.ID]; ok && want != l.Cached {
				t.Errorf("%s: said %d, the engine %d", l.ID, want, l.Cached)
			}
		}
	}
	if len(said) < 6 {
		t.Errorf("only %v", said)
	}
}

// TestRecordedSGLang: SGLang's own cache, with its signed hashes, evictions of whole nodes, and a clearing at the
// beginning.
func TestRecordedSGLang(t *testing.T) {
	lines := readTrace(t, "trace-sglang-0.5.23.jsonl")
	x, lost := losing()
	last := len(lines) - 2 // the engine is reset there
	replay(t, lines[:last], x)
	if s := x.Stats(); s.Unknown+s.Orphans+s.Conflicts > 0 || s.BlockSize != 16 || !s.Complete {
		t.Errorf("%+v", s)
	}
	got := map[string]int{}
	for _, id := range []string{"req-a", "req-a-again", "req-b", "req-c", "req-odd"} {
		got[id], _ = x.Resident(id)
	}
	// The two evictions took the end of req-b, and then the leaves behind what they share.
	if diff := cmp.Diff(map[string]int{"req-a": 64, "req-a-again": 64, "req-b": 64, "req-c": 64, "req-odd": 32}, got); diff != "" ||
		len(*lost) > 0 {
		t.Errorf("%s lost %v", diff, *lost)
	}
	replay(t, lines[last:], x)
	slices.Sort(*lost)
	if !slices.Equal(*lost, []string{"req-a", "req-a-again", "req-b", "req-c", "req-odd"}) {
		t.Errorf("after the reset: lost %v", *lost)
	}
}

// losing returns a complete index, and the requests that it reports as lost.
func losing() (x *residency.Index, lost *[]string) {
	lost = new([]string)
	x = residency.New(residency.Config{OnUpdate: func(us []residency.Update) {
		for _, u := range us {
			if u.Lost {
				*lost = append(*lost, u.RequestID)
			}
		}
	}})
	x.Complete(true)
	return x, lost
}
