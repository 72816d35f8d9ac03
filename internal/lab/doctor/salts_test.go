package doctor_test

import (
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/doctor"
)

// TestSalts: a salt that is ignored, or that does not stay what it is, is a problem where the server is known to have salts.
func TestSalts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		kind   doctor.Kind
		spoil  func(*fake)
		result doctor.Result
		says   string
	}{
		{"well", doctor.VLLM, func(*fake) {}, doctor.OK, "cache_salt: the same salt finds the prompt again"},
		{"SGLang", doctor.SGLang, func(*fake) {}, doctor.OK, "cache_salt: the same salt finds the prompt again"},
		{"well, and no schema", doctor.VLLM, func(f *fake) { f.noSchema = true }, doctor.OK, "cache_salt: the same salt"},
		{"ignored", doctor.VLLM, func(f *fake) { f.noSalts = true }, doctor.Problem, "with a salt, after it was asked without: 528 of 532"},
		{"ignored by SGLang", doctor.SGLang, func(f *fake) { f.noSalts = true }, doctor.Problem, "asked without: 528 of 532"},
		{
			"ignored, and not known whether it has any", doctor.VLLM, func(f *fake) { f.noSalts, f.noSchema = true, true },
			doctor.NotKnown, "whether this server has salts is not known",
		},
		{"new ones each time", doctor.VLLM, func(f *fake) { f.freshSalts = true }, doctor.Problem, "with the same salt again: 0 of 532"},
		{"the same for all", doctor.VLLM, func(f *fake) { f.oneSalt = true }, doctor.Problem, "with another salt: 528 of 532"},
		{"no report", doctor.VLLM, func(f *fake) { f.noDetails = true }, doctor.NotKnown, "do not report"},
		{"no cache", doctor.VLLM, func(f *fake) { f.noCache = true }, doctor.NotKnown, "without salts"},
		{"llama.cpp", doctor.LlamaCPP, func(*fake) {}, doctor.NotKnown, "has none"},
		{"another", doctor.Other, func(*fake) {}, doctor.NotKnown, "only those of"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{kind: tt.kind, block: 16, window: 8192, slots: 4}
			if tt.kind == doctor.LlamaCPP {
				f.block = 1
			}
			tt.spoil(f)
			c := find(t, examine(t, doctor.Config{Engine: serve(t, f)}), "salts")
			if c.Result != tt.result || !strings.Contains(c.Saw, tt.says) || (c.Do != "") != (c.Result == doctor.Problem) {
				t.Errorf("%+v", c)
			}
		})
	}
}
