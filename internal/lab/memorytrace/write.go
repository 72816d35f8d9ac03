package memorytrace

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

// Write writes folder/trace.jsonl, folder/blocks.jsonl and folder/plan.jsonl: the trace as it comes out of memories, under their
// labels, and how it would be sent. The folder must exist.
func Write(ctx context.Context, trc []trace.Request, blocks *trace.Blocks, opts Options, folder string) (err error) {
	p, err := New(ctx, trc, blocks, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	writers := map[string]*trace.Writer{}
	for _, name := range []string{"trace", "blocks", "plan"} {
		w, createErr := trace.Create(filepath.Join(folder, name+".jsonl"))
		if createErr != nil {
			return createErr
		}
		defer func() { err = errors.Join(err, w.Close()) }()
		writers[name] = w
	}
	for _, b := range p.Blocks {
		if err := writers["blocks"].WriteBlock(b); err != nil {
			return err
		}
	}
	for _, q := range trc {
		turn, err := p.Turn(ctx, q)
		if err != nil {
			return err
		}
		if err := errors.Join(writers["trace"].WriteRequest(turn.Request), writers["plan"].WritePlan(turn.Plan)); err != nil {
			return err
		}
	}
	return nil
}
