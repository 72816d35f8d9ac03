package memorytest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ragpilot/ragpilot/memory"
)

// porter returns the store as what it may be.
func (b *bench) porter() memory.Porter {
	p, ok := b.store.(memory.Porter)
	if !ok {
		b.Skip("cannot be written to a stream")
	}
	return p
}

// filled puts something of everything into the store.
func (b *bench) filled() {
	b.Helper()
	b.addWith(user("ana"), memory.AddOptions{Metadata: map[string]any{"n": 1}}, "apple <&> pear", "bread")
	id := b.add(memory.Scope{User: "bo", Run: "7"}, "cake", "line\nfeed")[0]
	b.update(id, "cakes")
	b.must(b.store.Delete(b.ctx, b.add(user("bo"), "dates")[0], memory.DeleteOptions{}))
}

func (b *bench) exported(scope memory.Scope) string {
	b.Helper()
	var out bytes.Buffer
	if err := b.porter().Export(b.ctx, scope, &out); err != nil {
		b.Fatalf("Export: %v", err)
	}
	return out.String()
}

func checkPort(b *bench) {
	p := b.porter()
	b.filled()
	everything, ana := b.exported(memory.Scope{}), b.exported(user("ana"))
	if strings.Contains(ana, `"bo"`) || strings.Count(ana, "\n") != 4 {
		b.Errorf("the export of one scope:\n%s", ana)
	}
	b.must(b.store.Reset(b.ctx))
	done, err := p.Import(b.ctx, strings.NewReader("\n"+everything))
	if want := (memory.Imported{Memories: 4, Revisions: 7}); err != nil || done != want {
		b.Errorf("Import = %+v, %v; want %+v", done, err, want)
	}
	b.equal("the result", everything, b.exported(memory.Scope{}))
	if hits := b.search(user("bo"), "cakes", memory.SearchOptions{}); len(hits) != 2 || hits[0].Memory.Text != "cakes" ||
		hits[0].Lexical == 0 {
		b.Errorf("imported memories are not found: %+v", hits)
	}
}

func checkPortTwice(b *bench) {
	p := b.porter()
	b.filled()
	everything := b.exported(memory.Scope{})
	b.must(errorOf(p.Import(b.ctx, strings.NewReader(everything))))
	b.equal("importing what is there changes it", everything, b.exported(memory.Scope{}))
	// The same text under another ID is not stored beside it.
	var lines []string
	for line := range strings.Lines(everything) {
		if strings.HasPrefix(line, `{"memory"`) {
			lines = append(lines, strings.Replace(line, `"id":"`, `"id":"x`, 1))
		}
	}
	done, err := p.Import(b.ctx, strings.NewReader(strings.Join(lines, "")))
	if err != nil || done.Skipped != 4 || done.Memories != 0 {
		b.Errorf("Import of repeats = %+v, %v", done, err)
	}
	var many strings.Builder // more than one batch
	for i := range 700 {
		fmt.Fprintf(&many, `{"memory":{"id":"m%d","text":"text %d","scope":{"user_id":"cy"},`+
			`"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}}`+"\n", i, i)
	}
	if done, err := p.Import(b.ctx, strings.NewReader(many.String())); err != nil || done.Memories != 700 {
		b.Errorf("Import of 700 = %+v, %v", done, err)
	}
	if n := len(b.all(user("cy"))); n != 700 {
		b.Errorf("%d memories, want 700", n)
	}
}

func checkBadImports(b *bench) {
	p := b.porter()
	good := `{"memory":{"id":"a","text":"apple","scope":{"user_id":"ana"}}}` + "\n"
	for name, c := range map[string]struct {
		line string
		want error
	}{
		"not JSON":       {"{", memory.ErrInvalid},
		"nothing known":  {"{}", memory.ErrInvalid},
		"no scope":       {`{"memory":{"id":"b","text":"b"}}`, memory.ErrNoScope},
		"no text":        {`{"memory":{"id":"b","text":" ","scope":{"user_id":"ana"}}}`, memory.ErrEmptyText},
		"no ID":          {`{"memory":{"text":"b","scope":{"user_id":"ana"}}}`, memory.ErrInvalid},
		"unknown event":  {`{"revision":{"id":"r","memory_id":"b","event":"X","scope":{"user_id":"ana"}}}`, memory.ErrInvalid},
		"no memory's ID": {`{"revision":{"id":"r","event":"ADD","scope":{"user_id":"ana"}}}`, memory.ErrInvalid},
	} {
		_, err := p.Import(b.ctx, strings.NewReader(good+c.line+"\n"))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "line 2") {
			b.Errorf("%s: %v, want %v for line 2", name, err, c.want)
		}
	}
	if n := len(b.all(user("ana"))); n > 1 {
		b.Errorf("%d memories after bad imports", n)
	}
}
