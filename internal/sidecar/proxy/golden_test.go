package proxy_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/prompt/orders"
	"github.com/ragpilot/ragpilot/internal/sidecar/compat/recorded"
	"github.com/ragpilot/ragpilot/internal/sidecar/proxy"
	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/stabilise"
)

var (
	update = flag.Bool("update", false, "rewrite the golden file")
	keep   = flag.String("keep", "", "write the bodies as they came and as they were forwarded into this directory")
)

const (
	seeds  = 2
	groups = 17 // for each dialect and seed
	shared = 10 // conversations that go through one proxy, in turn
	turns  = 10 // bodies of a conversation
)

// TestForwardedBytes sends 10,200 bodies of made-up conversations and compares what is forwarded with what was: the golden file has
// one hash for each conversation, with two digits for each of its bodies. Where it differs on purpose, run it with -update; the counts
// at the top of the file say how often each thing was done. With -keep on both sides, the bodies of two versions can be compared.
func TestForwardedBytes(t *testing.T) {
	testkit.NotUnderRace(t)
	if testing.Short() {
		t.Skip("takes several seconds")
	}
	t.Run("compat", func(t *testing.T) { forwardedBytes(t, true, "forwarded-compat.txt") })
	t.Run("default", func(t *testing.T) { forwardedBytes(t, false, "forwarded.txt") })
}

func forwardedBytes(t *testing.T, compat bool, file string) {
	t.Helper()
	var counts, hashes bytes.Buffer
	total := counted{}
	for _, d := range goldenDialects {
		for seed := 1; seed <= seeds; seed++ {
			sum := counted{}
			for g := range groups {
				sendGroup(t, compat, d, seed, g, func(s sending) {
					if sum.add(s); s.turn == 0 {
						fmt.Fprintf(&hashes, "%s ", s.conversation)
					}
					if fmt.Fprintf(&hashes, "%02x", s.sum[0]); s.turn == turns-1 {
						fmt.Fprintf(&hashes, " %s\n", hex.EncodeToString(s.all[:8]))
					}
				})
			}
			fmt.Fprintf(&counts, "# %s/%d %s\n", d.name, seed, &sum)
			total.merge(sum)
		}
	}
	for i, n := range total {
		kind, least := countedKinds[i], 200
		switch {
		case kind == "echoed" && compat, kind == "tools ordered" && !compat:
			least = 0
		case kind == "echoed":
			least = 50
		}
		if n < least {
			t.Errorf("%d bodies are counted as %q: the golden file would say little of it", n, kind)
		}
	}
	got := counts.String() + hashes.String()
	if want := testkit.Golden(t, *update, filepath.Join("testdata", file), got); got != want {
		explain(t, compat, want, got)
	}
}

// explain says which conversations differ, and shows the first body that does of each dialect.
func explain(t *testing.T, compat bool, want, got string) {
	t.Helper()
	before := map[string]string{}
	for line := range strings.Lines(want) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if name == "#" {
			t.Log("was ", strings.TrimSuffix(line, "\n"))
		}
		before[name] = rest
	}
	differ := map[string]int{}
	for line := range strings.Lines(got) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case name == "#":
			t.Log("now ", strings.TrimSuffix(line, "\n"))
		case before[name] != rest:
			dialect, _, _ := strings.Cut(name, "/")
			if differ[dialect]++; differ[dialect] == 1 {
				turn := 0
				for turn < turns-1 && len(before[name]) > 2*turn+2 && before[name][2*turn:2*turn+2] == rest[2*turn:2*turn+2] {
					turn++
				}
				show(t, compat, name, turn)
			}
		}
	}
	t.Errorf("conversations with other forwarded bytes, by dialect: %v (see -update and -keep)", differ)
}

// show sends a conversation again and shows one of its bodies.
func show(t *testing.T, compat bool, conversation string, turn int) {
	t.Helper()
	var seed, group, number int
	name, rest, _ := strings.Cut(conversation, "/")
	if _, err := fmt.Sscanf(rest, "%d/%d/%d", &seed, &group, &number); err != nil {
		t.Fatal(err)
	}
	for _, d := range goldenDialects {
		if d.name != name {
			continue
		}
		sendGroup(t, compat, d, seed, group, func(s sending) {
			if s.conversation == conversation && s.turn == turn {
				t.Errorf("%s, body %d: other bytes are forwarded.\ncame      %s\nforwarded %s", conversation, turn, s.came, s.went)
			}
		})
	}
}

type goldenDialect struct{ name, path string }

var goldenDialects = []goldenDialect{{"chat", chatPath}, {"messages", messagesPath}, {"responses", responsesPath}}

// sending is one body on its way.
type sending struct {
	conversation string
	turn         int
	came, went   string
	result       string            // the header
	sum          [sha256.Size]byte // of what went
	all          [sha256.Size]byte // of what went in this and the earlier turns
}

// sendGroup sends the conversations of a group, and gives the bodies of each of them in order. What the group's proxy meets depends on
// its number: an index with little room; a restart, with or without the orders that were chosen; request IDs; settings that change.
func sendGroup(t *testing.T, compat bool, d goldenDialect, seed, group int, do func(sending)) {
	t.Helper()
	g := &goldenGroup{compat: compat, kind: group % 5, store: orders.NewMemory(0, 0)}
	g.start(t)
	stream := (group*len(goldenDialects)+len(d.path))*100 + 1
	p := newPieces(diceOf(seed, stream))
	talks := make([]*talking, shared)
	sent := make([][]sending, shared)
	for i := range talks {
		talks[i] = newTalking(diceOf(seed, stream+1+i), p, d.path)
	}
	for turn := range turns {
		if turn == turns/2 {
			g.middle(t)
		}
		for i, talk := range talks {
			s := sending{conversation: fmt.Sprintf("%s/%d/%d/%d", d.name, seed, group, i), turn: turn, came: talk.next()}
			headers := talk.headers
			if g.kind == 3 {
				headers = append(slices.Clip(headers), "X-Request-Id", fmt.Sprintf("r-%d-%d", i, turn))
			}
			g.upstream.went = nil
			w := post(g.proxy, d.path, "tenant", s.came, headers...)
			s.went, s.result = string(g.upstream.went), w.Header().Get(proxy.ResultHeader)
			s.sum = sha256.Sum256([]byte(s.went))
			if turn > 0 {
				before := sent[i][turn-1].all
				s.all = sha256.Sum256(append(before[:], s.sum[:]...))
			} else {
				s.all = s.sum
			}
			if *keep != "" {
				name := filepath.Join(*keep, strings.ReplaceAll(s.conversation, "/", "-")+fmt.Sprintf("-%d", turn))
				if err := cmp.Or(
					os.WriteFile(name+".came", []byte(s.came), 0o600), os.WriteFile(name+".went", []byte(s.went), 0o600),
				); err != nil {
					t.Fatal(err)
				}
			}
			sent[i] = append(sent[i], s)
		}
	}
	for _, list := range sent {
		for _, s := range list {
			do(s)
		}
	}
}

// goldenGroup is the proxy of a group, and what is behind it.
type goldenGroup struct {
	compat   bool
	kind     int
	store    orders.Store
	upstream *wentThrough
	proxy    *proxy.Proxy
	heldOut  float64
}

func (g *goldenGroup) start(t *testing.T) {
	t.Helper()
	at := time.Unix(1_700_000_000, 0)
	now := func() time.Time { at = at.Add(time.Millisecond); return at }
	cfg := contextpilot.Config{Dedup: contextpilot.DedupOff, Notes: contextpilot.Notes{Hint: contextpilot.HintNone}, Now: now}
	if g.kind == 0 {
		cfg.MaxRequests = 4
	}
	if g.compat { // as in profile most-reuse, which serve takes with --compat
		cfg.Top = contextpilot.TopAnywhere
	}
	pilot, err := contextpilot.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	g.upstream = &wentThrough{}
	off, err := stabilise.New(stabilise.Config{}) // no rule is on
	if err != nil {
		t.Fatal(err)
	}
	o := proxy.Options{
		Stabiliser: off,
		Upstream:   &url.URL{Scheme: "http", Host: "engine"}, Pilot: pilot, Orders: g.store, Transport: g.upstream, Now: now,
		Log:  slog.New(slog.DiscardHandler),
		Live: func() (bool, float64) { return false, g.heldOut },
	}
	if g.compat {
		o.Compat = recorded.NewResults(budget.New(0), 0)
	}
	if g.kind == 3 {
		o.Index = &index{}
	}
	if g.kind == 4 {
		g.heldOut = 0.3
	}
	if g.proxy, err = proxy.New(complete(o)); err != nil {
		t.Fatal(err)
	}
}

// middle is what happens in the middle of the conversations.
func (g *goldenGroup) middle(t *testing.T) {
	t.Helper()
	switch g.kind {
	case 1:
		g.start(t)
	case 2:
		g.store = orders.NewMemory(0, 0)
		g.start(t)
	case 4:
		g.heldOut = 0
	}
}

// wentThrough is an engine that keeps the last body, a named fake. Now and then it fails.
type wentThrough struct {
	went []byte
	n    int
}

func (u *wentThrough) RoundTrip(r *http.Request) (*http.Response, error) {
	var err error
	if u.went, err = io.ReadAll(r.Body); err != nil {
		return nil, err
	}
	u.n++
	if u.n%17 == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	status := http.StatusOK
	if u.n%13 == 0 {
		status = http.StatusInternalServerError
	}
	n := len(u.went)
	answer := fmt.Sprintf(
		`{"usage":{"prompt_tokens":%d,"input_tokens":%d,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":%d}}}`, n/4, n/4,
		n/8,
	)
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(answer)),
		Body: io.NopCloser(strings.NewReader(answer)), Request: r, ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// counted says of how many bodies something was done, by the kinds below.
type counted [11]int

var countedKinds = [len(counted{})]string{
	"bodies", "changed", "system ordered", "tools ordered", "in part left out", "left out", "whole results", "rows", "rows in system",
	"fenced", "echoed",
}

func (c *counted) add(s sending) {
	var r struct {
		Details []struct {
			Source   string
			Count    int
			Original []int `json:"original_order"`
			Deduped  int
			Echoed   bool
		} `json:"reorder_details"`
		Slimmed int `json:"documents_slimmed"`
		Dedup   struct {
			System int `json:"system_blocks_matched"`
		}
	}
	_ = json.Unmarshal([]byte(s.result), &r) // none: nothing was done
	done := [len(countedKinds)]bool{0: true, 1: s.went != s.came}
	for _, d := range r.Details {
		done[10] = done[10] || d.Echoed
		switch {
		case d.Original != nil && strings.HasPrefix(d.Source, "system"):
			done[2] = true
		case d.Original != nil:
			done[3] = true
		case d.Deduped > 0 && r.Slimmed == 0:
			done[4] = true
		}
	}
	more := func(note string) bool { return strings.Count(s.went, note) > strings.Count(s.came, note) }
	done[5] = more("documents identical to a previous tool result (") || more(`[Documents \"`)
	done[6] = more("[Duplicate content — identical to a previous tool result (")
	done[7] = more(`[... \"`)
	done[8] = r.Dedup.System > 0
	done[9] = more(" (quoted")
	for i, is := range done {
		if is {
			c[i]++
		}
	}
}

func (c *counted) merge(d counted) {
	for i := range c {
		c[i] += d[i]
	}
}

func (c *counted) String() string {
	parts := make([]string, len(c))
	for i, n := range c {
		parts[i] = fmt.Sprintf("%s: %d", countedKinds[i], n)
	}
	return strings.Join(parts, ", ")
}
