package lint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ragpilot/ragpilot/internal/base/lru"
	"github.com/ragpilot/ragpilot/prefixdiff"
)

// Bounds of reading: the longest line, the requests that are compared at a time, and the bytes of those that are kept to be compared with.
const (
	maxLine   = 64 << 20
	batchSize = 128
	keptBytes = 32 << 20
)

// request is one line on its way.
type request struct {
	line    int
	from    int64
	body    []byte
	prompt  prefixdiff.Prompt
	err     error
	request *prefixdiff.Request
	finding prefixdiff.Finding
	found   bool
}

// place is where a request stands in its file.
type place struct {
	line int
	from int64
	size int
}

// file checks a file of request bodies. Its texts are read again where they are needed.
func (l *linter) file(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	var mu sync.Mutex
	var places []place
	kept := lru.With(lru.Options[int, prefixdiff.Prompt]{Weight: keptBytes, Weigh: func(_ int, p prefixdiff.Prompt) int { return weight(p) }})
	load := func(number int) (prefixdiff.Prompt, error) {
		mu.Lock()
		p, ok := kept.Get(number)
		at := places[number]
		mu.Unlock()
		if ok {
			return p, nil
		}
		body := make([]byte, at.size)
		if _, err := f.ReadAt(body, at.from); err != nil {
			return prefixdiff.Prompt{}, err
		}
		p, err := prefixdiff.Parse(body)
		if err == nil {
			mu.Lock()
			kept.Put(number, p)
			mu.Unlock()
		}
		return p, err
	}
	x, err := prefixdiff.New(prefixdiff.Config{MaxBytes: l.opt.MaxBytes, Load: load})
	if err != nil {
		return err
	}
	insert := func(r *request) {
		mu.Lock()
		places = append(places, place{r.line, r.from, len(r.body)})
		mu.Unlock()
		number := r.request.Insert()
		mu.Lock()
		kept.Put(number, r.prompt)
		mu.Unlock()
	}
	return l.lines(name, f, x, insert, func(n int) int { return places[n].line })
}

func weight(p prefixdiff.Prompt) int {
	n := 256
	for i := range p.Parts {
		n += len(p.Parts[i].Text) + len(p.Parts[i].Path) + 64
	}
	return n
}

// stream checks request bodies that can be read once only.
func (l *linter) stream(in io.Reader) error {
	x, err := prefixdiff.New(prefixdiff.Config{MaxBytes: l.opt.MaxBytes, KeepTexts: l.opt.KeepTexts})
	if err != nil {
		return err
	}
	var lines []int
	return l.lines("-", in, x, func(r *request) {
		lines = append(lines, r.line)
		r.request.Insert()
	}, func(n int) int { return lines[n] })
}

// lines checks the lines of a reader, several at a time, and reports in their order.
func (l *linter) lines(name string, in io.Reader, x *prefixdiff.Index, insert func(*request), line func(number int) int) error {
	s := &scanner{in: bufio.NewReaderSize(in, 1<<20)}
	requests := 0
	for {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		batch, err := s.batch()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if len(batch) == 0 {
			break
		}
		each(batch, func(r *request) {
			if r.prompt, r.err = prefixdiff.Parse(r.body); r.err == nil {
				r.request = l.prepare(x, r.prompt)
			}
		})
		for i := range batch {
			switch r := &batch[i]; {
			case r.err != nil:
				l.bad(fmt.Errorf("%s:%d: %w", name, r.line, r.err))
			default:
				requests++
				insert(r)
			}
		}
		each(batch, func(r *request) {
			if r.request != nil {
				r.finding, r.found = r.request.Explain()
			}
		})
		for i := range batch {
			if r := &batch[i]; r.found {
				if err := l.found(r.finding, Finding{File: name, Line: r.line, Against: line(r.finding.Against)}); err != nil {
					return err
				}
			}
		}
	}
	l.summary.Requests += requests
	if requests == 0 && l.summary.BadCount == 0 {
		l.bad(fmt.Errorf("%s: %w", name, ErrEmpty))
	}
	return nil
}

// each calls f for all requests, as many at a time as there are processors.
func each(batch []request, f func(*request)) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	const some = 8
	for from := 0; from < len(batch); from += some {
		group.Go(func() error {
			for i := from; i < min(from+some, len(batch)); i++ {
				f(&batch[i])
			}
			return nil
		})
	}
	_ = group.Wait()
}

// scanner cuts a file into lines.
type scanner struct {
	in   *bufio.Reader
	line int
	at   int64
}

// batch returns the next lines that are not empty; none at the end.
func (s *scanner) batch() ([]request, error) {
	batch := make([]request, 0, batchSize)
	size := 0
	for len(batch) < batchSize && size < keptBytes/2 {
		body, n, err := s.next()
		if n > 0 && (err == nil || errors.Is(err, io.EOF)) {
			s.line++
			from := s.at
			s.at += int64(n)
			if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 {
				from += int64(bytes.Index(body, trimmed[:1]))
				batch = append(batch, request{line: s.line, from: from, body: trimmed})
				size += n
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", s.line+1, err)
		}
	}
	return batch, nil
}

// errLong is returned for a line beyond the bound.
var errLong = fmt.Errorf("longer than %d bytes", maxLine)

// next returns the next line in memory of its own.
func (s *scanner) next() (line []byte, n int, err error) {
	for {
		piece, err := s.in.ReadSlice('\n')
		n += len(piece)
		if n > maxLine {
			return nil, n, errLong
		}
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, n, err
		}
	}
}
