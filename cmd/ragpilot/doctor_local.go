package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/internal/lab/doctor"
	"github.com/ragpilot/ragpilot/internal/lab/eval"
	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

const blockReuse = "block reuse"

// What an examination of a model in this process asks, and how it judges: see docs/doctor.md.
const (
	overlapRows   = 4
	overlapBlocks = 4
	overlapShare  = local.DefaultRecompute
	fewOverlap    = 0.65 // models with random weights have up to so much
	goodOverlap   = 0.75 // between those and SmolLM2 with 0.83, whose answers reuse is known to keep
)

// examineLocal examines a model in this process.
func examineLocal(ctx context.Context, name string, probe bool) (*doctor.Report, error) {
	report := &doctor.Report{Engine: "local", Kind: doctor.Local}
	add := func(name string, result doctor.Result, saw, do string) {
		report.Checks = append(report.Checks, doctor.Check{Name: name, Result: result, Saw: saw, Do: do})
	}
	path, err := modelFile(ctx, name, os.Stderr)
	if err != nil {
		add("model", doctor.Problem, err.Error(), "name a GGUF file, or smollm2, in --model")
		return report, ctx.Err()
	}
	cards := gpu.Diagnose() // before a card is used: some let only one program in
	engine, err := openModel(path, local.Config{})
	if err != nil {
		add("model", doctor.Problem, err.Error(), "use a model of an architecture that docs/local-engine.md lists")
		return report, ctx.Err()
	}
	defer func() { _ = engine.Close() }()
	add("model", doctor.OK, engine.Name(), "")
	report.Checks = append(report.Checks, checkCards(cards, engine.Device())...)
	for _, w := range engine.Warnings() {
		add("assumption", doctor.Warning, w, "")
	}
	switch err := slow(engine); {
	case err != nil:
		add("speed", doctor.Warning, err.Error(), "")
	case engine.Device() == "cpu":
		add("speed", doctor.OK, "vector instructions are used", "")
	}
	add("window", doctor.OK, fmt.Sprintf("%d tokens of prompt and answer", engine.Context()), "")
	if !probe {
		add(blockReuse, doctor.NotKnown, "not asked: no probes", "")
		return report, nil
	}
	overlaps, err := overlap(ctx, engine, &report.Sent)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		add(blockReuse, doctor.NotKnown, err.Error(), "")
	default:
		report.Checks = append(report.Checks, judgeOverlap(overlaps))
	}
	return report, nil
}

// checkCards says what cards there are, and which device computes.
func checkCards(found gpu.Diagnosis, computes string) []doctor.Check {
	if !gpu.Built() {
		return []doctor.Check{{Name: "device", Result: doctor.OK, Saw: computes + ": " + found.Problem}}
	}
	device := doctor.Check{Name: "device", Result: doctor.OK, Saw: computes}
	if found.Driver != "" {
		device.Saw += ", driver " + found.Driver
	}
	if found.Problem != "" {
		device.Result = doctor.Warning
		device.Saw += ": " + found.Problem
	}
	checks := []doctor.Check{device}
	for _, c := range found.Cards {
		check := doctor.Check{Name: c.Device, Result: doctor.OK, Saw: fmt.Sprintf("%s, compute capability %s, %.1f of %.1f GB free", c.Model,
			c.Capability, float64(c.Memory.Free)/1e9, float64(c.Memory.Total)/1e9)}
		if log := strings.TrimSpace(c.Log); log != "" {
			check.Saw += "; the driver says of the kernels: " + log
		}
		if c.Problem != "" {
			check.Result = doctor.Problem
			check.Saw += ": " + c.Problem
			check.Do = "use another card in --device, or the processor: --device cpu"
		}
		checks = append(checks, check)
	}
	return checks
}

// overlap measures generated rows.
func overlap(ctx context.Context, engine *local.Engine, sent *doctor.Sent) ([]float64, error) {
	var rows []eval.Row
	for k := overlapBlocks; ; k-- { // as many blocks as have room
		var err error
		if rows, err = eval.Generate(eval.Options{Rows: overlapRows, K: k, Seed: 1}); err != nil {
			return nil, err
		}
		if k == 2 || engine.Count(overlapRequest(&rows[0]).Messages[1].Content) < engine.Context()*3/4 {
			break
		}
	}
	overlaps := make([]float64, len(rows))
	for i := range rows {
		req := overlapRequest(&rows[i])
		a, err := engine.Attention(ctx, req, rows[i].Lead+" "+rows[i].Answers[0]+".")
		if err != nil {
			return nil, err
		}
		overlaps[i] = a.Overlap(overlapShare)
		sent.Prompts++
		sent.Tokens += len(engine.TokenizeChat(req.Messages))
	}
	return overlaps, nil
}

// overlapRequest is a generated row as a chat with blocks.
func overlapRequest(row *eval.Row) engines.Request {
	var text strings.Builder
	req := engines.Request{ID: row.ID}
	for _, b := range row.Blocks {
		from := text.Len()
		text.WriteString(b.Text + "\n")
		req.Blocks = append(req.Blocks, engines.BlockSpan{Message: 1, From: from, To: text.Len()})
	}
	req.Messages = []engines.Message{
		{Role: engines.System, Content: eval.DefaultSystem},
		{Role: engines.User, Content: text.String() + row.Question},
	}
	return req
}

// judgeOverlap says whether what a question attends to is a guide to what the answer needs.
func judgeOverlap(overlaps []float64) doctor.Check {
	mean := 0.0
	for _, o := range overlaps {
		mean += o / float64(len(overlaps))
	}
	c := doctor.Check{Name: blockReuse, Result: doctor.Warning}
	c.Saw = fmt.Sprintf("of the %.0f %% of the blocks' tokens that the answer attends to most, the question's are %.0f %% (%.0f to %.0f in "+
		"%d generated rows; random weights have up to %.0f): ",
		100*overlapShare, 100*mean, 100*slices.Min(overlaps), 100*slices.Max(overlaps), len(overlaps), 100*fewOverlap)
	switch {
	case mean >= goodOverlap:
		c.Result = doctor.OK
		c.Saw += "the model suits --reuse blocks"
	case mean >= fewOverlap:
		c.Saw += "it is not clear whether the model suits --reuse blocks"
		c.Do = "measure it: ragpilot eval --engine local --rows F --arms plain,blocks-20,blocks-40"
	default:
		c.Saw += "the model does not suit --reuse blocks"
		c.Do = "leave --reuse at prefix: the question is a poor guide to what must be computed again"
	}
	return c
}
