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
