package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/prefixdiff"
)

// found returns what an index finds in the bodies of a run, as labels.
func found(t *testing.T, r Recorded, cfg prefixdiff.Config) (labels []Label) {
	t.Helper()
	index, err := prefixdiff.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i, body := range r.Bodies {
		p, err := prefixdiff.Parse(body)
		if err != nil {
			t.Fatalf("%s, line %d: %v", r.Name, i+1, err)
		}
		f, ok := index.Add(p)
		if !ok {
			continue
		}
		labels = append(labels, Label{Line: f.Number + 1, Against: f.Against + 1, Cause: string(f.Cause), Path: f.Path})
		// What is estimated piece by piece may add up to a little more.
		if f.LostTokens < 0 || f.Token < 0 || f.Token+f.LostTokens > p.Tokens()*102/100 {
			t.Errorf("%s, line %d: %d tokens lost behind %d, of %d", r.Name, i+1, f.LostTokens, f.Token, p.Tokens())
		}
	}
	return labels
}

// wrong says what of the findings is not as the labels want it.
func wrong(got, want []Label) (faults []string) {
	for _, w := range want {
		i := slices.IndexFunc(got, func(g Label) bool { return g.Line == w.Line })
		if i < 0 {
			faults = append(faults, fmt.Sprintf("line %d: nothing found, want %s at %s against %d", w.Line, w.Cause, w.Path, w.Against))
			continue
		}
		g := got[i]
		got = slices.Delete(slices.Clone(got), i, i+1)
		if g.Cause != w.Cause {
			faults = append(faults, fmt.Sprintf("line %d: cause %s, want %s", w.Line, g.Cause, w.Cause))
		}
		if g.Path != w.Path && (!w.Within || !strings.HasPrefix(g.Path, w.Path+".") && !strings.HasPrefix(g.Path, w.Path+"[")) {
			faults = append(faults, fmt.Sprintf("line %d: path %s, want %s", w.Line, g.Path, w.Path))
		}
		if g.Against != w.Against && !slices.Contains(w.Also, g.Against) {
			faults = append(faults, fmt.Sprintf("line %d: against %d, want %d %d", w.Line, g.Against, w.Against, w.Also))
		}
	}
	for _, g := range got {
		faults = append(faults, fmt.Sprintf("line %d: found %s at %s against %d, want nothing", g.Line, g.Cause, g.Path, g.Against))
	}
	return faults
}

// An index finds what is planted, and nothing else; with texts and without.
func TestFindings(t *testing.T) {
	for _, cfg := range []prefixdiff.Config{{}, {KeepTexts: true}} {
		sick, right, pairs, none := 0, 0, 0, 0
		for _, r := range all(t) {
			faults := wrong(found(t, r, cfg), r.Want)
			for _, known := range open[r.Name] {
				if !slices.Contains(faults, known) {
					t.Errorf("%s (texts kept: %t): it is no longer so that %s", r.Name, cfg.KeepTexts, known)
				}
			}
			for _, f := range faults {
				if slices.Contains(open[r.Name], f) {
					t.Logf("open: %s: %s", r.Name, f)
					continue
				}
				t.Errorf("%s (texts kept: %t): %s", r.Name, cfg.KeepTexts, f)
			}
			if len(r.Want) > 0 {
				sick++
				if len(faults) == 0 {
					right++
				}
			} else {
				pairs += r.Pairs
				none += len(faults)
			}
		}
		t.Logf("texts kept: %t: %d of %d cases are right in cause, place and line; %d findings in %d stable pairs",
			cfg.KeepTexts, right, sick, none, pairs)
	}
}
