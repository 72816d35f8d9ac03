package doctor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/doctor"
)

// TestSharedPrefixByBlocks: whatever the length of a block, an engine that reuses all whole blocks is well. What is expected is counted
// in tokens and rounded down to whole blocks, not taken as a share of the text.
func TestSharedPrefixByBlocks(t *testing.T) {
	for _, kind := range []doctor.Kind{doctor.VLLM, doctor.SGLang} {
		for _, block := range []int{1, 16, 32, 64, 96, 128, 256, 400, 784} {
			for _, noTokenizer := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %d %v", kind, block, noTokenizer), func(t *testing.T) {
					t.Parallel()
					f := &fake{kind: kind, block: block, window: 32768, noTokenizer: noTokenizer}
					c := find(t, examine(t, doctor.Config{Engine: serve(t, f)}), "shared prefix")
					if c.Result != doctor.OK {
						t.Errorf("%+v", c)
					}
				})
			}
		}
	}
}

// TestSharedPrefixOfSparsePoints: a model with sliding windows reuses a beginning only after two prompts have parted there, which costs
// the second one. That is no problem, and nothing is measured from it.
func TestSharedPrefixOfSparsePoints(t *testing.T) {
	f := &fake{kind: doctor.VLLM, block: 32, sparse: true, window: 32768}
	r := examine(t, doctor.Config{Engine: serve(t, f)})
	c := find(t, r, "shared prefix")
	if c.Result != doctor.Warning ||
		!strings.Contains(c.Saw, "0 of them cached, of 384 in whole blocks of 32; 384 of another one after that") ||
		!strings.Contains(c.Do, "--prefix-cache-retention-interval") {
		t.Errorf("%+v", c)
	}
	if got := wrong(r); len(got) != 1 {
		t.Errorf("%q\n%s", got, printed(r))
	}
	f = &fake{kind: doctor.Other, block: 32, sparse: true, window: 32768}
	r = examine(t, doctor.Config{Engine: serve(t, f)})
	b, c := find(t, r, "block size"), find(t, r, "shared prefix")
	if b.Result != doctor.NotKnown || c.Result != doctor.Warning || !strings.Contains(c.Saw, "finds nothing of it, the next one does") {
		t.Errorf("%+v, %+v", b, c)
	}
}

// TestSharedPrefixIsShort: where fewer blocks are reused than are shared, that is said, with both numbers.
func TestSharedPrefixIsShort(t *testing.T) {
	for _, tt := range []struct {
		step   int // of what is reused
		result doctor.Result
		says   string
	}{
		{16, doctor.OK, "of them cached, of 384 in whole blocks of 16"},
		{256, doctor.Warning, ": 256 of them cached, of 384 in whole blocks of 16"},
		{480, doctor.Problem, ": 0 of them cached, of 384 in whole blocks of 16"},
	} {
		f := &fake{kind: doctor.VLLM, block: 16, step: tt.step, window: 32768}
		c := find(t, examine(t, doctor.Config{Engine: serve(t, f)}), "shared prefix")
		if c.Result != tt.result || !strings.Contains(c.Saw, tt.says) {
			t.Errorf("steps of %d: %+v", tt.step, c)
		}
	}
}
