package load_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/localtest"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/load"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// The tiers of sim.Server beside a real engine with two: engines/local keeps keys and values in memory, and in files what was computed.
// What a sim.Server is for that engine:
//
//   - Pages have 16 tokens. Memory is the simulator's CapacityTokens, the files are Tiers.Host.
//   - Pages are written when they are computed (write-through), in the background. Memory gives them up without writing.
//   - Pages are loaded when a request is admitted, and all of them are there before it computes: Layers is 0.
//   - The page with the last token of a prompt is computed, wherever it may be.
//   - Memory gives up the page unused longest, and of a request the last one first.
//
// In three points the two differ. The tests keep away from them:
//
//   - When there is no room for files, those written or read longest ago are deleted; to be found in memory is no use of a file, and the
//     first page of a prompt goes before those behind it. In sim.Server each use counts, and the last page goes first. Here all files
//     stay, but in TestFullFilesOfLocalEngine.
//   - A prompt of whole pages that is asked again computes its last page once more. The engine then has that page once, sim.Server and vLLM
//     twice. Here only the last request does that.
//   - The engine takes a page into memory that is being written; one that memory gave up before it was written may have to be computed
//     again. Here the next request is sent when all is written.
//
// Loading takes so little of the time that these tests do not show whether it overlaps with computing, nor 0.3 ms a page from nothing.

const pageTokens = 16

// tierSetup is an engine with files: the first line of a recording.
type tierSetup struct {
	Model      string `json:"model"`
	Engine     string `json:"engine"`
	Threads    int    `json:"threads"`
	Memory     int    `json:"memory_tokens"`
	Files      int    `json:"file_tokens"` // 0: room for all
	Step       int    `json:"step_tokens"`
	TokenBytes int    `json:"token_bytes"` // in a file
	Busy       string `json:"busy"`        // the machine, before and behind: the mean number of processes that ran
}

// server is the simulator of that engine.
func (s tierSetup) server(cost sim.StepCost, files sim.Copy) *sim.Server {
	return sim.NewServer(sim.ServerOptions{
		Options:     sim.Options{BlockTokens: pageTokens, CapacityTokens: s.Memory},
		BatchTokens: s.Step, StepCost: cost, Publish: 1,
		Tiers: sim.Tiers{Host: sim.Tier{CapacityTokens: cmp.Or(s.Files, 1<<30), Load: files}, TokenBytes: s.TokenBytes},
	})
}

// tierSample is one request and what became of it.
type tierSample struct {
	load.Sample
	Loaded int      `json:"loaded_tokens"` // of those cached, from files
	stored int      // all that is in files
	Round  int      `json:"round"`
	Parts  [][2]int `json:"parts,omitempty"` // of the prompt: number and tokens; only of the 60 requests
}

// tierRequests are 60 prompts: a head that all have in common, two of 14 documents, and a question of its own. Documents have two to four
// times so many tokens, and some more.
func tierRequests(seed uint64, tokens int) [][][2]int {
	r := rand.New(rand.NewPCG(seed, 0))
	const documents, requests = 14, 60
	var lengths []int
	for range documents {
		lengths = append(lengths, tokens*(2+r.IntN(3))+r.IntN(pageTokens))
	}
	var all [][][2]int
	for i := range requests {
		x := r.Float64()
		first := int(documents * x * x)
		second := (first + 1 + r.IntN(2)) % documents
		all = append(all, [][2]int{{0, 37}, {1 + first, lengths[first]}, {1 + second, lengths[second]}, {1 + documents + i, 9 + r.IntN(30)}})
	}
	return all
}

// wholePages is the beginning of one of the requests, as long as whole pages of it go. All of them are in memory or in files: only the last
// one is computed.
func wholePages(requests [][][2]int) [][2]int {
	for _, parts := range requests {
		tokens := 0
		for _, p := range parts {
			tokens += p[1]
		}
		if question := len(parts) - 1; parts[question][1] > tokens%pageTokens {
			parts = slices.Clone(parts)
			parts[question][1] -= tokens % pageTokens
			return parts
		}
	}
	return nil
}

// partTokens are the tokens of a part. The first one differs between parts, so that two prompts have the same tokens as long as they have
// the same parts: that is what a sim.Segment is.
func partTokens(part [2]int) []int32 {
	r := rand.New(rand.NewPCG(uint64(part[0]), 1))
	out := []int32{int32(50 + part[0])}
	for len(out) < part[1] {
		out = append(out, int32(50+r.IntN(150)))
	}
	return out
}

// tierEngine is a local engine that is asked one request after another.
type tierEngine struct {
	*local.Engine
	settle  func() // waits until all is written; nil: ask waits for the pages that requests have computed
	written int64  // these pages
}

func openTiers(t *testing.T, config local.Config, memory, tokenBytes int) *tierEngine {
	t.Helper()
	config.CacheDir, config.CacheBytes = t.TempDir(), int64(memory*tokenBytes)
	e := testkit.Must(local.Open(config))(t)
	t.Cleanup(func() { e.Close() })
	if got := e.Stats().Blocks * pageTokens; got != memory {
		t.Fatalf("memory has room for %d tokens, want %d", got, memory)
	}
	return &tierEngine{Engine: e}
}

// ask sends a request for so many tokens, and waits until all is in files.
func (e *tierEngine) ask(t *testing.T, name string, parts [][2]int, output int) tierSample {
	t.Helper()
	var prompt []int32
	for _, p := range parts {
		prompt = append(prompt, partTokens(p)...)
	}
	before := e.Stats()
	r := testkit.Must(e.GenerateTokens(t.Context(), engines.Request{
		MaxTokens: output, Extra: map[string]json.RawMessage{"ignore_eos": json.RawMessage("true")},
	}, prompt, nil))(t)
	s := tierSample{Loaded: int(e.Stats().LoadedBlocks-before.LoadedBlocks) * pageTokens, Parts: parts, Sample: load.Sample{
		Case: name, Requests: 1, Prompt: len(prompt), Cached: r.Usage.CachedTokens, Output: r.Usage.OutputTokens,
		Millis: float64(r.Total) / 1e6, // with one token: until it was there
	}}
	if output > 1 {
		s.Millis = float64(r.Total-r.TTFT) / 1e6 / float64(output-1)
	}
	e.written += int64((len(prompt)+output-1)/pageTokens - s.Cached/pageTokens)
	if e.settle != nil {
		e.settle()
	}
	for i := 0; i < 3000 && e.settle == nil && e.Stats().Disk.Written < e.written; i++ {
		time.Sleep(10 * time.Millisecond)
	}
	x := e.Stats()
	if e.settle == nil && x.Disk.Written != e.written || x.LostBlocks+x.Disk.Errors+x.Disk.Damaged > 0 {
		t.Fatalf("%s: want %d pages written: %+v", name, e.written, x)
	}
	s.stored = int(x.Disk.Written) * pageTokens
	return s
}

// predict is what a simulated server answers, one request after another.
func predict(s *sim.Server, requests [][][2]int) []sim.Served {
	var out []sim.Served
	var now time.Duration
	for i, parts := range requests {
		p := sim.Prompt{Answer: sim.Segment{ID: 1 << 40, Tokens: 1}}
		p.Answer.ID += uint64(i)
		for _, x := range parts {
			p.Segments = append(p.Segments, sim.Segment{ID: uint64(x[0]), Tokens: x[1]})
		}
		s.SubmitPrompt(now, p)
		for at, ok := s.Next(); ok; at, ok = s.Next() {
			now = at
			out = append(out, s.Step()...)
		}
	}
	return out
}

// equalHits checks that each request read as much from memory and from files as was predicted. It returns how many requests read more than
// the head from memory, how many read files, and how many computed a document.
func equalHits(t *testing.T, got []tierSample, want []sim.Served) (memory, files, computed int) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d requests, %d predicted", len(got), len(want))
	}
	for i, g := range got {
		w := want[i]
		if m, n := g.Cached-g.Loaded, w.Usage.CachedTokens-w.Loaded; m != n || g.Loaded != w.Loaded || g.Prompt != w.Usage.PromptTokens {
			t.Errorf("%s: of %d tokens %d from memory and %d from files; predicted of %d: %d and %d",
				g.Case, g.Prompt, m, g.Loaded, w.Usage.PromptTokens, n, w.Loaded)
		}
		const much = 64
		if g.Cached-g.Loaded > much {
			memory++
		}
		if g.Loaded > much {
			files++
		}
		if g.Prompt-g.Cached > much {
			computed++
		}
	}
	return memory, files, computed
}

const (
	tinyMemory     = 60 * pageTokens
	tinyTokenBytes = 2 * 2 * 2 * 16 * 4 // keys and values, 2 layers, 2 heads, 16 numbers of 4 bytes
	tinyFile       = pageTokens*tinyTokenBytes + 116
)

// askTiny asks a tiny model's engine, whose files have room for so many pages; 0: for all. Time stands still while it computes, loads or
// writes, so how long that takes changes nothing.
func askTiny(t *testing.T, requests [][][2]int, pages int) (got []tierSample) {
	file := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := localtest.WriteModel(file, 5); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		e := openTiers(t, local.Config{Model: file, Threads: 1, DiskBytes: int64(pages * tinyFile)}, tinyMemory, tinyTokenBytes)
		e.settle = synctest.Wait
		for i, parts := range requests {
			got = append(got, e.ask(t, fmt.Sprint("request ", i), parts, 1))
		}
		if n := e.Stats().Disk.Blocks; pages > 0 && n != pages {
			t.Errorf("%d pages are in files, want %d", n, pages)
		}
	})
	return got
}

// TestTiersOfLocalEngine: a simulated server reads the same tokens from the same tiers as a real engine, request by request.
func TestTiersOfLocalEngine(t *testing.T) {
	setup := tierSetup{Memory: tinyMemory, Step: local.DefaultStep, TokenBytes: tinyTokenBytes}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			requests := tierRequests(seed, 50)
			requests = append(requests, wholePages(requests))
			server := setup.server(sim.StepCost{}, sim.Copy{})
			got := askTiny(t, requests, 0)
			memory, files, computed := equalHits(t, got, predict(server, requests))
			if stored := got[len(got)-1].stored; stored != server.Transfers().Stored {
				t.Errorf("%d tokens were written, predicted %d", stored, server.Transfers().Stored)
			}
			t.Logf("%d requests read memory, %d files, %d computed a document", memory, files, computed)
			if min(memory, files, computed) < 15 {
				t.Error("want many of each")
			}
		})
	}
}

// TestFullFilesOfLocalEngine shows what is different when files have not room for all: memory is the same, and the engine reads less from
// files than a simulated server, since it deletes the first pages of prompts first.
func TestFullFilesOfLocalEngine(t *testing.T) {
	const pages = 100
	setup := tierSetup{Memory: tinyMemory, Files: pages * pageTokens, Step: local.DefaultStep, TokenBytes: tinyTokenBytes}
	requests := tierRequests(2, 50)
	loaded, simulated := 0, 0
	predicted := predict(setup.server(sim.StepCost{}, sim.Copy{}), requests)
	for i, g := range askTiny(t, requests, pages) {
		p := predicted[i]
		loaded, simulated = loaded+g.Loaded, simulated+p.Loaded
		if m, n := g.Cached-g.Loaded, p.Usage.CachedTokens-p.Loaded; m != n {
			t.Errorf("%s: %d tokens from memory, predicted %d", g.Case, m, n)
		}
	}
	t.Logf("%d tokens from files, predicted %d", loaded, simulated)
	if loaded == 0 || loaded >= simulated {
		t.Errorf("%d tokens from files, predicted %d: if the engine deletes other files now, the tests above should fill them", loaded, simulated)
	}
}
