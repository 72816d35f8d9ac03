package compress_test

import (
	"math"
	"slices"
	"testing"

	"github.com/ragpilot/ragpilot/engines/local/internal/compress"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/engines/local/internal/modeltest"
	"github.com/ragpilot/ragpilot/engines/local/internal/tinymodel"
)

// TestProfile: the shares of a profile are those of the notes' attention behind the slots, within what a level stands for, and
// an answer that attends as the notes do has no drift.
func TestProfile(t *testing.T) {
	m := tiny(t, tinymodel.Options{Seed: 3})
	part := part(t, m, nil, tokens(1, 150))
	const slots = 48
	k := keep(t, part, compress.Default, slots)
	before := slices.Clone(k.Pages[0])
	if ok, err := part.Look(t.Context(), k); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if !slices.Equal(k.Pages[0], before) {
		t.Error("what was kept has changed")
	}
	// The same in one go, by the model itself.
	pages := modeltest.Pages(t, m.Model, slots+len(texts.Prompt)+len(texts.Notes))
	for i, page := range k.Pages {
		pages[i].Host = modeltest.Placed(t, m.Model, page, k.Positions[i], i*llama.PageTokens)
	}
	worker, probes, other := modeltest.NewWorker(t, m.Model, 1), m.NewProbes(slots), m.NewProbes(slots)
	worker.Forward([]llama.Span{{Tokens: part.Prompt, Position: slots, Pages: pages, Probes: other}})
	worker.Forward([]llama.Span{{Tokens: part.Notes, Position: slots + len(part.Prompt), Pages: pages, Probes: probes}})
	kv := m.Shape().KV
	shares := compress.Shares(k.Profile, m.Layers, kv)
	exact := make([][]float32, m.Layers)
	for layer, probe := range probes {
		exact[layer] = make([]float32, kv*slots)
		for head := range kv {
			total := 0.0
			for _, x := range probe.Sums[head*slots+4:][:slots-4] {
				total += float64(x)
			}
			for i := range slots {
				want := float64(probe.Sums[head*slots+i]) / total
				if i < 4 {
					want = 0
				}
				exact[layer][head*slots+i] = float32(want)
				if got := float64(shares[layer][head*slots+i]); math.Abs(got-want) > 0.05*want+3e-5 || i < 4 && got != 0 {
					t.Fatalf("layer %d, head %d, slot %d: %g, want %g", layer, head, i, got, want)
				}
			}
		}
	}
	if got := compress.Drift(probes, exact); math.Abs(got) > 1e-6 {
		t.Errorf("drift %g of what attends alike", got)
	}
	same, far := compress.Drift(probes, shares), compress.Drift(other, shares)
	if same > 0.001 || far < 2*same {
		t.Errorf("drift %g of the notes, %g of other text", same, far)
	}
	own := 0.0
	for i := range 2 { // of 45 tokens
		piece := m.NewProbes(slots)
		worker.Forward([]llama.Span{{Tokens: part.Notes[16*i:][:16], Position: slots + len(part.Prompt) + 16*i, Pages: pages, Probes: piece}})
		own += compress.Drift(piece, shares) / 2
	}
	if math.Abs(k.Own-own) > 1e-5 || own <= same {
		t.Errorf("the notes' own drift is %g, want %g, more than the whole's %g", k.Own, own, same)
	}
	part.Notes, k.Profile = part.Notes[:31], nil
	if ok, err := part.Look(t.Context(), k); ok || err != nil || k.Profile != nil {
		t.Errorf("of short notes: %t, %v, %v", ok, err, k.Profile)
	}
	// By hand, of one head: all on slot 4, where notes have a quarter.
	one, notes := m.NewProbes(slots), [][]float32{make([]float32, kv*slots)}
	for head := range kv {
		one[0].Sums[head*slots], one[0].Sums[head*slots+4], notes[0][head*slots+4] = 9, 2, 0.25
	}
	if got := compress.Drift(one[:1], notes); math.Abs(got-math.Log(4)) > 1e-4 {
		t.Errorf("drift %g, want log 4", got)
	}
	if got := compress.Drift(m.NewProbes(slots), shares); got != 0 {
		t.Errorf("drift %g of an answer that attends to nothing", got)
	}
}
