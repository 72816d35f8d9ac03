package compress

import (
	"context"
	"math"

	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
	"github.com/ragpilot/ragpilot/internal/nn/compute"
)

// A level of a [Kept.Profile] stands for the share 2^(-level/levelsPerBit).
const levelsPerBit = 16

// LookedRows is how many tokens of notes are compared with all of them: as many as an answer is judged by.
const LookedRows = 16

// Look has the notes read once more, behind what was kept, and writes to k.Profile what they attend to, and to k.Own their own drift. It
// returns false, and writes neither, if the notes are too short for that.
func (p *Part) Look(ctx context.Context, k *Kept) (bool, error) {
	if len(p.Notes) < 2*LookedRows {
		return false, nil
	}
	behind := &Part{model: p.model, tokens: make([]int32, k.Slots())} // the slots' tokens are not looked at
	var err error
	if behind.pages, err = p.model.NewPages(len(k.Pages)); err != nil {
		return false, err
	}
	defer behind.Close()
	for i, page := range k.Pages {
		if err := Place(p.model.worker, p.model.Model, behind.pages[i], page, k.Positions[i], i*llama.PageTokens); err != nil {
			return false, err
		}
	}
	if _, err := behind.forward(ctx, p.Prompt, k.Slots(), nil, 0); err != nil {
		return false, err
	}
	at := k.Slots() + len(p.Prompt)
	probes := p.model.NewProbes(k.Slots())
	if _, err := behind.forward(ctx, p.Notes, at, probes, 0); err != nil {
		return false, err
	}
	kv := p.model.Shape().KV
	k.Profile = make([][]uint8, len(k.Pages))
	for i := range k.Profile {
		k.Profile[i] = make([]uint8, p.model.Layers*kv*llama.PageTokens)
	}
	for layer, probe := range probes {
		for head := range kv {
			sums := probe.Sums[head*probe.Tokens:][:probe.Tokens]
			total := sum(sums[sinks:])
			for slot, x := range sums {
				level := 255.0
				if slot >= sinks && x > 0 {
					level = min(level, math.Round(-levelsPerBit*math.Log2(float64(x)/total)))
				}
				k.Profile[slot/llama.PageTokens][(layer*kv+head)*llama.PageTokens+slot%llama.PageTokens] = uint8(level)
			}
		}
	}
	shares, windows := Shares(k.Profile, p.model.Layers, kv), len(p.Notes)/LookedRows
	k.Own = 0
	for i := range windows {
		probes := p.model.NewProbes(k.Slots())
		if _, err := behind.forward(ctx, p.Notes[i*LookedRows:][:LookedRows], at+i*LookedRows, probes, 0); err != nil {
			return false, err
		}
		k.Own += Drift(probes, shares) / float64(windows)
	}
	return true, nil
}

func sum(values []float32) (all float64) {
	for _, x := range values {
		all += float64(x)
	}
	return all
}

// Shares are those of a profile's slots: of each layer, for each head, what part of its attention to slots a slot has. The first slots
// have none: much attention goes to them, whatever is asked.
func Shares(profile [][]uint8, layers, kv int) [][]float32 {
	all, slots := make([][]float32, layers), len(profile)*llama.PageTokens
	for layer := range all {
		all[layer] = make([]float32, kv*slots)
		for head := range kv {
			shares := all[layer][head*slots:][:slots]
			for slot := sinks; slot < slots; slot++ {
				level := profile[slot/llama.PageTokens][(layer*kv+head)*llama.PageTokens+slot%llama.PageTokens]
				shares[slot] = float32(math.Exp2(-float64(level) / levelsPerBit))
			}
			for total, slot := sum(shares), sinks; slot < slots; slot++ {
				shares[slot] = float32(float64(shares[slot]) / total)
			}
		}
	}
	return all
}

// least is what is added to each share, so that none is 0.
const least = 1e-6

// Drift is how far what an answer attended to is from the shares of notes: the relative entropy, in nats, of the answer's shares, mean over
// layers and heads.
func Drift(answer []*compute.Probe, notes [][]float32) float64 {
	drift, heads := 0.0, 0
	for layer, probe := range answer {
		for at := 0; at < len(probe.Sums); at += probe.Tokens {
			sums, shares := probe.Sums[at:][:probe.Tokens], notes[layer][at:][:probe.Tokens]
			heads++
			total := sum(sums[sinks:])
			if total == 0 {
				continue
			}
			for i := sinks; i < len(sums); i++ {
				p := float64(sums[i]) / total
				drift += p * math.Log((p+least)/(float64(shares[i])+least))
			}
		}
	}
	return drift / float64(max(heads, 1))
}
