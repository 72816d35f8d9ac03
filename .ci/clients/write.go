package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Expected is a line of expected.jsonl: the findings of one file.
type Expected struct {
	File     string  `json:"file"`
	Findings []Label `json:"findings"`
}

// Recorded is a case that was run.
type Recorded struct {
	Name   string
	Bodies [][]byte
	Want   []Label
	Pairs  int // stable ones
}

// All runs all cases, healthy and sick, and all stable programs.
func All(ctx context.Context) ([]Recorded, error) {
	var out []Recorded
	for _, c := range slices.Concat(Cases(), Grid(), GridTools(), GridHistory()) {
		for _, sick := range []bool{true, false} {
			bodies, err := Record(ctx, c.Name, c.Run, sick)
			if err != nil {
				return nil, err
			}
			r := Recorded{Name: c.Name, Bodies: bodies, Want: c.Want}
			if c.Labels != nil {
				r.Want = c.Labels()
			}
			if !sick {
				r = Recorded{Name: c.Name + "-healthy", Bodies: bodies, Pairs: len(bodies) - 1}
			} else if err := also(&r); err != nil {
				return nil, err
			}
			out = append(out, r)
		}
	}
	for _, s := range slices.Concat(Stable(), moreStable) {
		bodies, err := Record(ctx, s.Name, s.Run, false)
		if err != nil {
			return nil, err
		}
		out = append(out, Recorded{Name: s.Name, Bodies: bodies, Pairs: len(bodies) - 1})
	}
	return out, nil
}

// Write writes the bodies of each run to a file of JSON lines, and what is expected to expected.jsonl.
func Write(ctx context.Context, dir string) error {
	all, err := All(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var expected bytes.Buffer
	for _, r := range all {
		file := "bodies-" + r.Name + ".jsonl"
		if err := os.WriteFile(filepath.Join(dir, file), append(bytes.Join(r.Bodies, []byte("\n")), '\n'), 0o644); err != nil {
			return err
		}
		line, err := json.Marshal(Expected{File: file, Findings: append([]Label{}, r.Want...)})
		if err != nil {
			return fmt.Errorf("labels of %s: %w", r.Name, err)
		}
		expected.Write(append(line, '\n'))
	}
	return os.WriteFile(filepath.Join(dir, "expected.jsonl"), expected.Bytes(), 0o644)
}
