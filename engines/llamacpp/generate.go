package llamacpp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// Generate implements [engines.Engine]. Before the request is sent, the server is asked for the prompt's tokens (two short
// requests), and the request waits until one of the server's slots is free; TTFT and Total include both. Of req.Extra it
// understands id_slot, cache_prompt, n and lora, which concern the cache, and context.
//
// context is the name of one of Config.Contexts: the request is answered behind it, as if it were the chat's first system prompt. It
// is restored to a slot unless that has it already. The answer then comes in one piece, and the request takes the members of
// /completion. A context that is not there, or does not fit the server, is [engines.ErrRefused].
//
// Errors are those of [openai.Engine.Generate].
func (e *Engine) Generate(ctx context.Context, req engines.Request, onText func(piece string) error) (engines.Response, error) {
	start := e.config.Server.Now()
	g := &generation{engine: e, request: req, record: newRecord()}
	if err := g.admit(ctx); err != nil {
		return engines.Response{ID: req.ID}, fmt.Errorf("engine %s: before the request was sent: %w", e.Name(), err)
	}
	var response engines.Response
	complete := false
	defer func() { g.end(response, complete) }() // also if onText panics: others wait for the slot
	waited := e.config.Server.Now().Sub(start)
	response, err := g.send(ctx, onText)
	response.Total += waited
	if response.TTFT > 0 {
		response.TTFT += waited
	}
	if err != nil {
		g.lost = ctx.Err() == nil && (errors.Is(err, engines.ErrInterrupted) || errors.Is(err, engines.ErrUnreachable))
		status, ok := errors.AsType[*openai.StatusError](err)
		g.refused = ok && status.Code == http.StatusBadRequest
		return response, err
	}
	g.fill(ctx, response.Text)
	complete = true
	return response, nil
}

// send sends the request.
func (g *generation) send(ctx context.Context, onText func(piece string) error) (engines.Response, error) {
	e := g.engine
	if g.context != nil {
		r, err := g.complete(ctx, onText)
		if err != nil {
			err = fmt.Errorf("engine %s: %w", e.Name(), err)
		}
		return r, err
	}
	return e.chat.Generate(openai.WithChunks(e.client.watch(ctx), g.chunk), asking(g.request, g.extra, g.pin), onText)
}

// generation is one call of Generate.
type generation struct {
	engine     *Engine
	request    engines.Request
	extra      map[string]json.RawMessage
	options    options
	context    *compressed // nil: none
	lease      *lease
	pin        int // the slot that the request is sent to, -1: the server chooses
	prediction Prediction
	record     record
	lost       bool // the server went away
	refused    bool // the server found the request wrong, for example too long
}

// admit looks at the server, waits for a slot, and predicts. The only errors are those of ctx and of a context.
func (g *generation) admit(ctx context.Context) error {
	e := g.engine
	g.extra = e.extras(g.request)
	g.options = readOptions(g.extra)
	var err error
	if g.context, err = e.context(g.extra, g.options); err != nil {
		return err
	}
	for again := true; ; again = false {
		prompt, err := e.look(ctx, g.request, g.extra)
		if ctx.Err() != nil {
			return ended(ctx)
		}
		if err != nil && g.context != nil {
			return err // the server would not find it
		}
		if err != nil {
			prompt = nil // the request is sent blind
		}
		turn := e.turn()
		g.lease = &lease{
			id: g.request.ID, prompt: prompt, reuse: g.options.reuse && g.options.simple,
			private: g.options.salted || g.context != nil,
		}
		if err := e.admit(ctx, g.lease, g.options.slot); err != nil {
			return err
		}
		if err != nil || e.still(ctx, turn) {
			break
		}
		// While the request waited, the server was restarted, perhaps with another model, or it spoilt an answer.
		if !again && g.context == nil {
			g.lease.prompt = nil
			break
		}
		e.free(g.lease)
		if !again {
			return fmt.Errorf("%w: the server was restarted twice", engines.ErrUnreachable)
		}
	}
	e.exchange(ctx, g.lease)
	if g.context != nil {
		if err := e.attach(ctx, g.lease, g.context); err != nil {
			e.free(g.lease)
			return err
		}
	}
	e.mu.Lock()
	g.prediction, g.pin = e.book.predict(g.lease), -1
	if !e.config.Unpinned && !e.book.clears {
		g.pin = g.lease.slot
	}
	e.unlock()
	e.config.OnPredict(g.prediction)
	return nil
}

// chunk takes over what a chunk has.
func (g *generation) chunk(data []byte) {
	before := g.record.begun
	g.record.add(data)
	if before || !g.record.begun || g.pin < 0 {
		return
	}
	g.engine.mu.Lock()
	g.engine.book.begin(g.lease, g.lease.slot)
	g.engine.unlock()
}

// fill asks for the tokens of the answer's text if some of those that were generated are not known. That happens where
// several tokens make one character, and where the server holds text back to see what becomes of it.
func (g *generation) fill(ctx context.Context, text string) {
	if g.record.count < 0 || g.record.whole() || g.lease.prompt == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, g.engine.config.Patience)
	defer cancel()
	if tokens, err := g.engine.tokenize(ctx, text, false); err == nil {
		g.record.fill(tokens)
	}
}

// end enters the outcome into the book and frees the slot.
func (g *generation) end(response engines.Response, complete bool) {
	e := g.engine
	e.mu.Lock()
	defer e.unlock()
	if complete {
		g.served(response)
	} else {
		g.failed()
		if g.lost {
			e.suspicions++
		}
	}
	if !g.options.simple {
		e.book.distrust(nil) // several answers take other slots too
	}
	e.book.release(g.lease)
	e.dispatch()
}

// ended returns the error of a context that has ended, with its cause if that says more.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func (g *generation) served(response engines.Response) {
	b, u := &g.engine.book, response.Usage
	at := g.ran()
	tokens, length := g.sequence(), g.record.length
	if !g.options.simple || u.PromptTokens != len(g.lease.prompt) {
		tokens = nil
	}
	if length < 0 && g.record.count >= 0 && tokens != nil {
		length = len(g.lease.prompt) + max(g.record.count-1, 0)
	}
	if length >= 0 && length < len(tokens) {
		tokens = nil // the server has moved its context on
	}
	b.served(g.lease, at, tokens, length, contextpilot.Event{
		Kind: contextpilot.Served, Request: response.ID, Tokens: u.CachedTokens, Output: u.OutputTokens,
	})
	if g.engine.stats.count(g.prediction, u) {
		g.engine.suspicions++
	}
	if d := g.engine.disk; d != nil {
		d.computed(g.record.computed, g.record.took)
		if g.lease.restored && u.CachedKnown && u.PromptTokens == len(g.lease.prompt) {
			d.used(u.CachedTokens, g.prediction.Cached)
		}
	}
}

func (g *generation) failed() {
	b := &g.engine.book
	if g.record.begun && !g.lease.begun { // on a slot that the server has chosen and not reported
		b.stray(g.lease, g.record.slot)
		return
	}
	switch {
	case g.lease.slot < 0:
	case g.refused && !b.hostCache:
		b.refused(g.lease)
	default:
		b.failed(g.lease, g.lease.slot, g.sequence())
	}
}

// ran returns the slot that the request ran on, -1 if that is not known.
func (g *generation) ran() int {
	if n := len(g.engine.book.slots); g.record.slot >= 0 && g.record.slot < n {
		return g.record.slot
	}
	return g.lease.slot
}

// sequence returns the tokens that the slot certainly has after the request has begun, nil if the prompt is not known.
func (g *generation) sequence() []token {
	if g.lease.prompt == nil {
		return nil
	}
	return slices.Concat(g.lease.prompt, g.record.kept())
}
