package llamacpp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/internal/slotnote"
)

// compressed is a context of the configuration: a slot file and its note.
type compressed struct {
	name, path string
	note       slotnote.Note
}

func openContexts(files map[string]string) (map[string]*compressed, error) {
	all := map[string]*compressed{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name == "" {
			return nil, errors.New("llamacpp: Config.Contexts: a name is empty")
		}
		note, err := slotnote.Read(files[name])
		if err != nil {
			return nil, fmt.Errorf("llamacpp: Config.Contexts: context %q: %w", name, err)
		}
		all[name] = &compressed{name, files[name], note}
	}
	return all, nil
}

// context returns the context that a request names, nil if it names none.
func (e *Engine) context(extra map[string]json.RawMessage, o options) (*compressed, error) {
	if extra["context"] == nil {
		return nil, nil
	}
	refused := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", engines.ErrRefused, fmt.Sprintf(format, args...))
	}
	name := ""
	if err := json.Unmarshal(extra["context"], &name); err != nil {
		return nil, refused("context %s: want a name", extra["context"])
	}
	if name == "" {
		return nil, nil
	}
	c, ok := e.contexts[name]
	switch {
	case !ok:
		return nil, refused("context %q: not loaded; there are %q", name, slices.Sorted(maps.Keys(e.contexts)))
	case e.config.Unpinned:
		return nil, refused("context %q: requests are not sent to slots (Config.Unpinned)", name)
	case !o.reuse || !o.simple:
		return nil, refused("context %q: not with cache_prompt false, n above 1, or lora", name)
	}
	return c, nil
}

// contextMark stands for the context where the chat is rendered. It comes first, whatever messages have in them.
const contextMark = "[[ragpilot: the context]]"

// behind returns the tokens of a prompt behind a context, which is in the chat's first system prompt: those that stand for it, its last
// ones, and the chat.
func (e *Engine) behind(ctx context.Context, c *compressed, req engines.Request, extra map[string]json.RawMessage) ([]token, error) {
	req.Messages = slices.Concat([]engines.Message{{Role: engines.System, Content: contextMark}}, req.Messages)
	extra = maps.Clone(extra)
	delete(extra, "context")
	text, err := e.render(ctx, req, extra)
	if err != nil {
		return nil, err
	}
	_, text, ok := strings.Cut(text, contextMark)
	if !ok {
		return nil, fmt.Errorf("%w: context %q: the server's chat template leaves the system prompt out", engines.ErrRefused, c.name)
	}
	var reply struct {
		Tokens []token `json:"tokens"`
	}
	if err := e.ask(ctx, "/tokenize", map[string]any{"content": text, "add_special": false, "parse_special": true}, &reply); err != nil {
		return nil, err
	}
	return slices.Concat(c.note.Tokens, c.note.Rest, reply.Tokens), nil
}

// attach sees to it that a lease's slot has its context.
func (e *Engine) attach(ctx context.Context, l *lease, c *compressed) error {
	if !e.pins(l) {
		return fmt.Errorf("%w: context %q: the server empties idle slots: start it with --parallel N", engines.ErrRefused, c.name)
	}
	e.mu.Lock()
	s := e.book.slots[l.slot] // nothing else runs on it
	e.mu.Unlock()
	if s.share(l.prompt) >= len(c.note.Tokens) && !s.check {
		return nil
	}
	if err := e.fits(ctx, c); err != nil {
		return fmt.Errorf("context %q: %w", c.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, diskPatience)
	defer cancel()
	done, err := e.client.act(ctx, l.slot, "restore", filepath.Base(c.path))
	if err == nil && done.Restored != len(c.note.Tokens) {
		err = fmt.Errorf("%d of %d tokens were restored", done.Restored, len(c.note.Tokens))
	}
	if err != nil {
		e.empty(ctx, l)
		return fmt.Errorf("context %q: %s: the server did not restore it (its --slot-save-path must be the file's folder, "+
			"its cache of type %s, flash attention on): %w",
			c.name, c.path, c.note.Type, err)
	}
	e.refill(l, c.note.Tokens, len(c.note.Tokens))
	return nil
}

// fits refuses a file before the server sees it: one that is not as it was written, or is for another server.
func (e *Engine) fits(ctx context.Context, c *compressed) error {
	info, err := e.client.info(ctx)
	if err != nil {
		return err
	}
	if info.Slots != c.note.Parallel {
		return fmt.Errorf("%w: %s is for a server with --parallel %d: this one has %d slots", engines.ErrRefused, c.path, c.note.Parallel,
			info.Slots)
	}
	if most := info.ContextSlot; most > 0 && len(c.note.Tokens) >= most {
		return fmt.Errorf("%w: %s has %d tokens: a slot of the server has room for %d", engines.ErrRefused, c.path, len(c.note.Tokens), most)
	}
	if err := e.sameModel(c, info.Model); err != nil {
		return fmt.Errorf("%w: %w", engines.ErrRefused, err)
	}
	if err := c.note.Whole(c.path); err != nil {
		return fmt.Errorf("%w: %w", engines.ErrRefused, err)
	}
	return nil
}

// sameModel compares the server's model with the one that the file was made with, where it can be read here: it is read once for each
// time that it has been changed.
func (e *Engine) sameModel(c *compressed, path string) error {
	about, err := os.Stat(path)
	if err != nil || !about.Mode().IsRegular() {
		return nil //nolint:nilerr // the server is on another machine, or its files are not for this user
	}
	wrong := fmt.Errorf("%s was computed with model %s (SHA-256 %.16s): the server has another one, %s", c.path, c.note.Model,
		c.note.ModelFile, path)
	if about.Size() != c.note.ModelBytes {
		return wrong
	}
	key := fmt.Sprintf("%q %d %d", path, about.Size(), about.ModTime().UnixNano())
	e.mu.Lock()
	sum := e.models[key]
	e.mu.Unlock()
	if sum == "" {
		if _, sum, err = slotnote.Sum(path); err != nil {
			return err
		}
		e.mu.Lock()
		e.models = map[string]string{key: sum}
		e.mu.Unlock()
	}
	if sum != c.note.ModelFile {
		return wrong
	}
	return nil
}

// completion is the server's answer to a prompt of tokens.
type completion struct {
	Text      string  `json:"content"`
	Tokens    []token `json:"tokens"`
	Slot      int     `json:"id_slot"`
	Stop      string  `json:"stop_type"`
	Prompt    int     `json:"tokens_evaluated"`
	Generated int     `json:"tokens_predicted"`
	Length    int     `json:"tokens_cached"`
	Timings   struct {
		Cached *int `json:"cache_n"`
	} `json:"timings"`
}

// complete asks behind a context. The chat endpoint takes no tokens, so the answer comes in one piece.
func (g *generation) complete(ctx context.Context, onText func(piece string) error) (r engines.Response, err error) {
	e, r := g.engine, engines.Response{ID: g.request.ID}
	start := e.config.Server.Now()
	a, err := g.completion(ctx)
	if err != nil {
		return r, err
	}
	g.record.begun, g.record.slot, g.record.length = true, a.Slot, a.Length
	g.record.count, g.record.answer = a.Generated, a.Tokens
	if a.Timings.Cached == nil || *a.Timings.Cached < len(g.context.note.Tokens) {
		return r, fmt.Errorf("context %q: the server did not find it in slot %d: "+
			"other clients use it, or its model does not keep every prefix", g.context.name, a.Slot)
	}
	r.Text, r.Finish = a.Text, "stop"
	if a.Stop == "limit" {
		r.Finish = "length"
	}
	r.Usage = engines.Usage{PromptTokens: a.Prompt, OutputTokens: a.Generated, CachedTokens: *a.Timings.Cached, CachedKnown: true}
	r.Total = e.config.Server.Now().Sub(start)
	r.TTFT = r.Total
	if onText != nil && r.Text != "" {
		if err := onText(r.Text); err != nil {
			return r, err
		}
	}
	return r, ctx.Err()
}

func (g *generation) completion(ctx context.Context) (a completion, err error) {
	body := map[string]any{"prompt": g.lease.prompt, "id_slot": g.pin, "n_predict": -1}
	if g.request.MaxTokens > 0 {
		body["n_predict"] = g.request.MaxTokens
	}
	if g.request.Temperature != nil {
		body["temperature"] = *g.request.Temperature
	}
	for name, value := range g.extra {
		if name != "context" && name != "id_slot" {
			body[name] = value
		}
	}
	body["stream"], body["return_tokens"], body["cache_prompt"] = false, true, true
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(body); err != nil {
		return a, fmt.Errorf("body for /completion: %w", err)
	}
	data, err := g.engine.chat.Do(g.engine.client.watch(ctx), http.MethodPost, "/completion", b.Bytes())
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("answer of /completion: %w", err)
	}
	return a, nil
}
