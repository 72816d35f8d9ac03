package httpload

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/internal/lab/upstream"
)

// Defaults of [StreamsConfig].
const (
	DefaultOpening       = 256
	DefaultStreamTimeout = 10 * time.Minute
)

// StreamsConfig describes many streams at a time.
type StreamsConfig struct {
	Target *Target
	// Bodies must ask for streams, and number them by their seeds, as [Generate] does.
	Bodies *Made
	// Streams is how many are opened, Opening how many of them at a time wait for the status of their answers; 0:
	// [DefaultOpening].
	Streams, Opening int
	// Tokens is how many tokens each answer must have; 0: as many as its usage says.
	Tokens int
	// Timeout bounds one stream; 0: [DefaultStreamTimeout].
	Timeout time.Duration
}

// StreamsReport says what became of the streams.
type StreamsReport struct {
	Target  string `json:"target"`
	Streams int    `json:"streams"`
	// Intact streams had every token once, in order, and ended as a stream should. The others are Errors.
	Intact int     `json:"intact"`
	Errors []Error `json:"errors"`
	// PeakOpen is how many were open together at most: the answer's status was there, its end was not.
	PeakOpen int     `json:"peak_open"`
	Tokens   int64   `json:"tokens"`
	Received int64   `json:"bytes_received"`
	Seconds  float64 `json:"seconds"`
	// TTFT is from when a stream's request was sent to its first text.
	TTFT Summary `json:"ttft"`
}

// Streams opens many streams, which must be numbered answers of internal/lab/upstream, and checks each token of each. They
// are open together if they last longer than opening them takes. It ends early with ctx, whose cause it then returns.
func Streams(ctx context.Context, c StreamsConfig) (StreamsReport, error) {
	if c.Target == nil || c.Bodies == nil || c.Streams < 1 || c.Tokens < 0 || c.Opening < 0 || c.Timeout < 0 {
		return StreamsReport{}, errors.New("want a target, bodies, at least one stream, and nothing below 0")
	}
	if c.Opening == 0 {
		c.Opening = DefaultOpening
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultStreamTimeout
	}
	h := holder{config: c, ids: newIDs()}
	begun := time.Now()
	h.all(ctx)
	if ctx.Err() != nil {
		return StreamsReport{}, context.Cause(ctx)
	}
	t := h.tally.report(c.Target.Name, Load{}, time.Since(begun))
	return StreamsReport{
		Target: t.Target, Streams: c.Streams, Intact: t.OK, Errors: t.Errors, PeakOpen: h.peak,
		Tokens: h.tokens, Received: t.Received, Seconds: t.Seconds, TTFT: t.TTFT,
	}, nil
}

// holder holds streams open.
type holder struct {
	config StreamsConfig
	ids    ids
	tally  tally

	mu         sync.Mutex
	open, peak int   // guarded by mu
	tokens     int64 // guarded by mu
}

func (h *holder) all(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	opening := make(chan struct{}, h.config.Opening)
	for n := range h.config.Streams {
		select {
		case opening <- struct{}{}:
		case <-ctx.Done():
			return
		}
		group.Go(func() {
			h.one(ctx, n, sync.OnceFunc(func() { <-opening }))
		})
	}
}

// one reads stream n; opened is called when its status is there, or it failed.
func (h *holder) one(ctx context.Context, n int, opened func()) {
	defer opened()
	ctx, cancel := context.WithTimeout(ctx, h.config.Timeout)
	defer cancel()
	sent := time.Now()
	o := h.config.Target.do(ctx, h.config.Bodies.Body(n), h.ids.of(n), func(r *http.Response, o *outcome) {
		opened()
		h.count(1, 0)
		check := streamCheck{text: numberCheck{seed: int64(n)}, tokens: h.config.Tokens}
		check.read(r, o)
		h.count(-1, check.text.complete())
	})
	h.tally.count(sent, sent, time.Now(), o)
}

// count notes that a stream was opened or has ended, with so many tokens.
func (h *holder) count(open, tokens int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open += open
	h.peak = max(h.peak, h.open)
	h.tokens += int64(tokens)
}

// streamBuffer is small because there are many streams; a chunk has some 250 bytes.
const streamBuffer = 1 << 10

// streamCheck checks one stream.
type streamCheck struct {
	text   numberCheck
	tokens int // wanted; 0: what the usage says

	id, finish string // the chunks' ID, the finish reason
	usage      int    // output tokens by the server's count; 0: not known yet
}

// What can be wrong with a stream.
const (
	corrupt    = "corrupt stream"
	incomplete = "incomplete stream"
)

func (c *streamCheck) read(r *http.Response, o *outcome) {
	if !isStream(r) {
		o.fail(corrupt, fmt.Errorf("content type %q", r.Header.Get("Content-Type")))
		return
	}
	e := newEvents(r.Body, bufio.NewReaderSize(nil, streamBuffer))
	complete := e.all(o, corrupt, func(data []byte) error {
		chunk, err := parseChunk(data)
		if err == nil {
			err = c.take(chunk)
		}
		if err == nil && o.first.IsZero() && chunk.text() != "" {
			o.first = time.Now()
		}
		return err
	})
	if !complete {
		return
	}
	if err := c.end(e.done); err != nil {
		o.fail(incomplete, err)
	}
}

// take checks the next chunk.
func (c *streamCheck) take(x *chunk) error {
	switch {
	case c.id == "":
		c.id = x.ID
	case c.id != x.ID:
		return fmt.Errorf("%w: a chunk of answer %q in answer %q", errCorrupt, x.ID, c.id)
	}
	if c.finish != "" && x.text() != "" {
		return fmt.Errorf("%w: text behind the finish reason", errCorrupt)
	}
	if len(x.Choices) > 0 && x.Choices[0].Finish != "" {
		c.finish = x.Choices[0].Finish
	}
	if x.Usage != nil {
		c.usage = x.Usage.Output
	}
	return c.text.add(x.text())
}

// end checks that a stream whose end has come is complete.
func (c *streamCheck) end(done bool) error {
	got := c.text.complete()
	switch {
	case !done:
		return fmt.Errorf("no [DONE] behind %d tokens", got)
	case c.finish == "":
		return fmt.Errorf("no finish reason behind %d tokens", got)
	case c.text.rest != "":
		return fmt.Errorf("token %d is cut off", got)
	case c.usage != got:
		return fmt.Errorf("%d tokens, the usage says %d", got, c.usage)
	case c.tokens > 0 && c.tokens != got:
		return fmt.Errorf("%d tokens, want %d", got, c.tokens)
	}
	return nil
}

// numberCheck checks a text that arrives in pieces of any length: the numbers of [upstream.Numbered] from a seed on, with
// one space between them.
type numberCheck struct {
	seed  int64
	begun int    // tokens that have begun to arrive
	rest  string // of the last of these, to come
	bytes int    // of text so far
}

// complete returns the number of tokens that are all there.
func (c *numberCheck) complete() int {
	if c.rest != "" {
		return c.begun - 1
	}
	return c.begun
}

// add takes the next piece of text. Once it returned an error the text is spoilt.
func (c *numberCheck) add(piece string) error {
	for len(piece) > 0 {
		if c.rest == "" {
			c.rest = upstream.Number(c.seed, c.begun)
			if c.begun > 0 {
				c.rest = " " + c.rest
			}
			c.begun++
		}
		n := min(len(c.rest), len(piece))
		for i := range n {
			if c.rest[i] != piece[i] {
				return fmt.Errorf("%w: byte %d of the text: %q, want %q of token %d", errCorrupt, c.bytes+i, piece[:n], c.rest, c.begun-1)
			}
		}
		c.rest, piece = c.rest[n:], piece[n:]
		c.bytes += n
	}
	return nil
}
