//go:build unix

package vllmtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// What is asked of 600 requests of the trace multihop-2wiki: the mean time to the first token, as a share of that in plain order.
const (
	allRequests = 600
	warmUp      = 400 // of the requests, in which the cache fills; online planning is judged on the others
	onlineShare = 0.65
	batchShare  = 0.58
	topShare    = 0.35
	armPool     = 200_000 // tokens of cache
)

// What a request costs, measured once where the figures asked for come from: used where times are not measured.
const (
	requestMillis = 87
	tokenMillis   = 0.65
)

// TestRealTTFT sends a recorded trace in plain order, planned online, and planned as one batch, and compares the times to the
// first token.
func TestRealTTFT(t *testing.T) {
	python, model := needs(t, envModel)
	newContest(t, python, model).run("ttft", true)
}

// TestRealComputed does the same with a model that has the tokens of the other and computes next to nothing: times mean nothing, but
// how many tokens had to be computed is exact.
func TestRealComputed(t *testing.T) {
	python, model := needs(t, envCount)
	newContest(t, python, model).run("computed", false)
}

// contest is the three arms and what they are judged on.
type contest struct {
	t                      *testing.T
	plain, online, offline *arm
	n, cut                 int
	paired                 bool
	pool                   int
	timed                  bool
	began                  string
	lines                  []line
	dtype                  string
}

func newContest(t *testing.T, python, model string) *contest {
	t.Helper()
	c := &contest{t: t, n: setting(t, envRequests, allRequests), pool: setting(t, envPool, armPool), dtype: os.Getenv(envDtype)}
	if c.dtype == "" {
		c.dtype = "bfloat16"
	}
	c.cut = setting(t, envCut, blockTokens)
	requests := recorded(t, c.n, c.cut)
	const block = 32
	// One block is vLLM's own.
	s := serve(t, options{
		python: python, model: model, block: block, blocks: c.pool/block + 1, window: 8192, dtype: c.dtype, replay: true,
		threads: setting(t, envThreads, 2), gigabytes: gigabytes(t, model, c.dtype, c.pool+block),
	})
	c.began = machineLoad()
	c.plain = newArm(t, s, "plain", "retrieval", requests)
	c.online = newArm(t, s, "online", "", requests)
	c.offline = newArm(t, s, "offline", "", requests)
	c.paired = c.pool >= 3*armPool || os.Getenv(envPaired) == "1"
	return c
}

// gigabytes returns the memory that a model's cache of so many tokens takes.
func gigabytes(t *testing.T, model, dtype string, tokens int) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(model, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Hidden  int `json:"hidden_size"`
		Layers  int `json:"num_hidden_layers"`
		Heads   int `json:"num_attention_heads"`
		KVHeads int `json:"num_key_value_heads"`
	}
	if err := json.Unmarshal(text, &c); err != nil || c.Heads == 0 {
		t.Fatalf("config.json of the model: %v, %+v", err, c)
	}
	bytes := 2
	if dtype == "float32" {
		bytes = 4
	}
	return tokens*c.Layers*2*c.KVHeads*(c.Hidden/c.Heads)*bytes>>30 + 1
}

// run sends everything and judges. Where the cache has room for all arms, they send in turn, so that whatever else runs on the
// machine meets all of them; otherwise one arm follows the other, each with an empty cache.
func (c *contest) run(name string, timed bool) {
	c.timed = timed
	c.offline.together()
	arms := []*arm{c.plain, c.online, c.offline}
	c.t.Logf("%s; load %s", c, machineLoad())
	if c.paired {
		for i := range c.n {
			for j := range arms {
				arms[(i+j)%len(arms)].send(i)
			}
			c.progress(i, arms...)
		}
	} else {
		for _, a := range arms {
			if err := a.engine.ResetCache(c.t.Context()); err != nil {
				c.t.Fatal(err)
			}
			for i := range c.n {
				a.send(i)
				c.progress(i, a)
			}
		}
	}
	c.judge()
	c.report(name)
}

func (c *contest) progress(i int, arms ...*arm) {
	if (i+1)%50 != 0 {
		return
	}
	for _, a := range arms {
		var sent []int
		for r := range a.took {
			if a.took[r].Prompt > 0 {
				sent = append(sent, r)
			}
		}
		ttft, computed := a.mean(sent)
		c.t.Logf("%-8s %4d requests: %6.0f ms, %5.0f tokens computed; load %s", a.name, len(sent), ttft, computed, machineLoad())
	}
}

// String says what the figures were taken with.
func (c *contest) String() string {
	return fmt.Sprintf(
		"%d requests of blocks of up to %d tokens, cache of %d tokens, %s, arms in turn: %t",
		c.n,
		c.cut,
		c.pool,
		c.dtype,
		c.paired,
	)
}
