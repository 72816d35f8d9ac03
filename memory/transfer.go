package memory

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	importBatch = 256     // lines that are stored, and texts that are embedded, together
	maxLine     = 8 << 20 // bytes of an imported line
)

// line is one line of an export: a memory or a revision.
type line struct {
	Memory   *Memory   `json:"memory,omitempty"`
	Revision *Revision `json:"revision,omitempty"`
}

// Export writes memories, the oldest first, then revisions in the order in which they were written. Vectors and
// entities are not written: Import makes them, with its own embedder and by [Names]. Conversations are not written.
func (l *Local) Export(ctx context.Context, scope Scope, w io.Writer) (err error) {
	defer named("export", &err)
	if scope != (Scope{}) {
		if err := scope.Validate(); err != nil {
			return err
		}
	}
	var memories []Memory
	err = l.backend.Scan(ctx, scope, Memories, func(r *Record) bool {
		memories = append(memories, r.Memory)
		return true
	})
	if err != nil {
		return err
	}
	sortByAge(memories)
	out := bufio.NewWriter(w)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for i := range memories {
		if err := lines.Encode(line{Memory: &memories[i]}); err != nil {
			return err
		}
	}
	var wrong error
	err = l.backend.History(ctx, scope, "", func(r *Revision) bool {
		wrong = lines.Encode(line{Revision: r})
		return wrong == nil
	})
	return errors.Join(wrong, err, out.Flush())
}

// Import reads an export.
func (l *Local) Import(ctx context.Context, r io.Reader) (Imported, error) {
	var done Imported
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	var batch []line
	number, first := 0, 1
	flush := func() error {
		n, err := l.store(ctx, batch)
		if err != nil {
			return fmt.Errorf("memory: import: lines %d to %d: %w", first, number, err)
		}
		done.Memories += n.Memories
		done.Revisions += n.Revisions
		done.Skipped += n.Skipped
		batch, first = batch[:0], number+1
		return nil
	}
	for in.Scan() {
		number++
		raw := bytes.TrimSpace(in.Bytes())
		if len(raw) == 0 {
			continue
		}
		read, err := readLine(raw)
		if err != nil {
			return done, fmt.Errorf("memory: import: line %d: %w", number, err)
		}
		if batch = append(batch, read); len(batch) == importBatch {
			if err := flush(); err != nil {
				return done, err
			}
		}
	}
	if err := in.Err(); err != nil {
		return done, fmt.Errorf("memory: import: line %d: %w", number+1, err)
	}
	return done, flush()
}

// readLine reads and checks one line.
func readLine(raw []byte) (line, error) {
	var in line
	if err := json.Unmarshal(raw, &in); err != nil {
		return line{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	switch {
	case in.Memory != nil && in.Revision == nil:
		return in, in.Memory.settle()
	case in.Revision != nil && in.Memory == nil:
		return in, in.Revision.settle()
	}
	return line{}, fmt.Errorf("%w: neither a memory nor a revision", ErrInvalid)
}

// settle brings what comes from outside to the form that is stored.
func (m *Memory) settle() error {
	m.Text = clean(m.Text)
	if m.ID = clean(m.ID); m.ID == "" || len(m.ID) > maxScope {
		return fmt.Errorf("%w: id %q", ErrInvalid, m.ID)
	}
	if m.Text == "" {
		return ErrEmptyText
	}
	m.Hash, m.Role, m.Actor = HashOf(m.Text), clean(m.Role), clean(m.Actor)
	m.CreatedAt, m.UpdatedAt, m.ExpiresAt = stored(m.CreatedAt), stored(m.UpdatedAt), stored(m.ExpiresAt)
	var err error
	if m.Metadata, err = cleanMetadata(m.Metadata); err != nil {
		return err
	}
	return m.Scope.Validate()
}

func (r *Revision) settle() error {
	if r.ID, r.MemoryID = clean(r.ID), clean(r.MemoryID); r.ID == "" || r.MemoryID == "" {
		return fmt.Errorf("%w: id %q, memory_id %q", ErrInvalid, r.ID, r.MemoryID)
	}
	switch r.Event {
	case Added, Updated, Deleted:
	default:
		return fmt.Errorf("%w: event %q", ErrInvalid, r.Event)
	}
	r.Old, r.New, r.Role, r.Actor, r.At = clean(r.Old), clean(r.New), clean(r.Role), clean(r.Actor), stored(r.At)
	return r.Scope.Validate()
}

// store writes a batch in one transaction.
func (l *Local) store(ctx context.Context, batch []line) (done Imported, err error) {
	var texts []string
	for _, in := range batch {
		if in.Memory != nil {
			texts = append(texts, in.Memory.Text)
		}
	}
	vectors, err := l.vectors(ctx, texts)
	if err != nil {
		return Imported{}, err
	}
	err = l.backend.Change(ctx, func(tx Tx) error {
		keep, err := l.agreed(ctx, tx, vectors...)
		if err != nil {
			return err
		}
		done = Imported{}
		next := 0
		for _, in := range batch {
			if in.Revision != nil {
				if fresh, err := tx.Append(ctx, in.Revision); err != nil {
					return err
				} else if fresh {
					done.Revisions++
				}
				continue
			}
			r := Record{
				Memory: *in.Memory, Vector: vectors[next], Entities: l.entities(nil, in.Memory.Text),
			}
			next++
			if !keep {
				r.Vector = nil
			}
			other, taken, err := tx.Find(ctx, r.Memory.Scope, r.Memory.Hash)
			if err != nil {
				return err
			}
			if taken && other.ID != r.Memory.ID {
				done.Skipped++
				continue
			}
			if err := tx.Put(ctx, &r); err != nil {
				return err
			}
			done.Memories++
		}
		return nil
	})
	return done, err
}
