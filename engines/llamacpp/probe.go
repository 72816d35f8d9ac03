package llamacpp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/ragpilot/ragpilot/engines/openai"
)

// acted is the server's answer to an action on a slot.
type acted struct {
	Saved    int   `json:"n_saved"`
	Written  int64 `json:"n_written"`
	Restored int   `json:"n_restored"`
}

// act saves, restores or erases a slot. The server does it when the slot is free.
func (c *client) act(ctx context.Context, at int, action, file string) (done acted, err error) {
	body := []byte("{}")
	if file != "" {
		body = fmt.Appendf(nil, `{"filename":%q}`, file)
	}
	err = c.post(ctx, fmt.Sprintf("/slots/%d?action=%s", at, url.QueryEscape(action)), body, &done)
	return done, err
}

// cachedOf lets the server read a prompt on a slot, and returns how many of its tokens were cached there.
func (c *client) cachedOf(ctx context.Context, at int, prompt []token) (int, error) {
	var answer struct {
		Timings struct {
			Cached *int `json:"cache_n"`
		} `json:"timings"`
	}
	body := fmt.Appendf(nil, `{"prompt":%s,"n_predict":1,"id_slot":%d}`, strings.ReplaceAll(fmt.Sprint(prompt), " ", ","), at)
	if err := c.post(ctx, "/completion", body, &answer); err != nil {
		return 0, err
	}
	if answer.Timings.Cached == nil {
		return 0, errors.New("its answers have no count of what is cached")
	}
	return *answer.Timings.Cached, nil
}

// probeText has some sixty tokens.
const probeText = "To see whether what this slot holds can be saved and restored, these few lines of text are read once, and then the " +
	"first half of them is read again: of a prompt that goes another way, what was restored should be cached up to that place, as it " +
	"would be without a file."

// growth is how long files are: one of tokens has bytes, if it has all their keys and values, and each token more adds perToken.
type growth struct {
	tokens   int
	bytes    float64
	perToken float64
}

func (g growth) size(tokens int) float64 { return g.bytes + g.perToken*float64(tokens-g.tokens) }

// whole reports whether a file is as long as it must be. Layers with sliding windows have saved the last tokens only, also where the
// server keeps all (--swa-full) and takes what it restores for all.
func (g growth) whole(tokens int, bytes int64) bool {
	return float64(bytes) >= 0.999*g.size(tokens)
}

// probe tries on a slot, which it overwrites, whether the server uses what it restores. The error says why not.
func (c *client) probe(ctx context.Context, dir string, at int) (g growth, err error) {
	tokens, other, err := c.probePrompts(ctx)
	if err != nil {
		return g, err
	}
	if _, err := c.act(ctx, at, "erase", ""); err != nil {
		return g, err
	}
	name := "ragpilot-probe-" + rand.Text() + fileEnding
	defer func() { err = errors.Join(err, leaveNothing(filepath.Join(dir, name))) }()
	want := common(tokens, other)
	half, err := c.readAndSave(ctx, at, tokens[:want], name)
	if err != nil {
		return g, err
	}
	all, err := c.readAndSave(ctx, at, tokens, name)
	if err != nil {
		return g, err
	}
	if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() != all.Written {
		return g, fmt.Errorf("what the server saves is not in %s: its --slot-save-path is another folder", dir)
	}
	if _, err := c.act(ctx, at, "erase", ""); err != nil {
		return g, err
	}
	restored, err := c.act(ctx, at, "restore", name)
	if err != nil {
		return g, err
	}
	cached, err := c.cachedOf(ctx, at, other)
	// More than the common part are used by a server that moves what stands behind it (--cache-reuse).
	if err == nil && (restored.Restored != all.Saved || cached < want) {
		err = fmt.Errorf("of %d restored tokens %d are used, not %d: the model has sliding windows or recurrent layers (llama.cpp #26676)",
			restored.Restored, cached, want)
	}
	if more := all.Saved - half.Saved; more > 0 {
		g = growth{half.Saved, float64(half.Written), float64(all.Written-half.Written) / float64(more)}
	}
	return g, err
}

func (c *client) readAndSave(ctx context.Context, at int, prompt []token, name string) (acted, error) {
	if _, err := c.cachedOf(ctx, at, prompt); err != nil {
		return acted{}, err
	}
	return c.act(ctx, at, "save", name)
}

// probePrompts returns two prompts that differ from the middle on. The error says why a server cannot be tried with them.
func (c *client) probePrompts(ctx context.Context) (tokens, other []token, err error) {
	adapters, err := c.call(ctx, http.MethodGet, "/lora-adapters", nil)
	if err == nil && strings.TrimSpace(string(adapters)) != "[]" {
		return nil, nil, errors.New("the server has adapters (--lora): keys and values depend on their scales, which files do not know")
	}
	var text struct {
		Tokens []token `json:"tokens"`
	}
	if err := c.post(ctx, "/tokenize", fmt.Appendf(nil, `{"content":%q}`, probeText), &text); err != nil {
		return nil, nil, err
	}
	// The other one leaves a token out.
	half := len(text.Tokens) / 2
	other = append(text.Tokens[:half:half], text.Tokens[half+1:]...)
	if n := common(text.Tokens, other); n < 2 || n == len(other) {
		return nil, nil, fmt.Errorf("its model makes %d tokens of a text", len(text.Tokens))
	}
	return text.Tokens, other, nil
}

// leaveNothing deletes what a probe has left. Where the server saves to another folder there is nothing.
func leaveNothing(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// try finds out on a lease's slot whether the server's present process can save and restore, and returns the key of its files, "" if it
// cannot. A slot that has much of the lease's prompt is left for it, and the next request tries.
func (e *Engine) try(ctx context.Context, l *lease) (key string) {
	e.mu.Lock()
	share := e.book.slots[l.slot].share(l.prompt)
	e.mu.Unlock()
	if 2*share > len(l.prompt) {
		return ""
	}
	bounded, cancel := context.WithTimeout(ctx, diskPatience)
	defer cancel()
	var grows growth
	info, err := e.client.info(bounded)
	if err == nil {
		grows, err = e.client.probe(bounded, e.disk.shelf.dir, l.slot)
	}
	e.empty(bounded, l)
	off := ""
	switch {
	case ctx.Err() != nil || !e.pins(l): // the next request tries again
		return ""
	case err != nil:
		off = err.Error()
	default:
		key = e.disk.modelKey(info)
	}
	e.disk.set(l.turn, key, off, grows)
	return key
}

// ProbeSlotFiles tries whether a llama-server can save a slot to a folder, which is its --slot-save-path, and use it again. The
// slot, numbered from 0, is overwritten. The error says why not, in words for people; it is nil if [Config].SlotDir will work.
func ProbeSlotFiles(ctx context.Context, server openai.Config, dir string, slot int) error {
	e, err := New(Config{Server: server})
	if err != nil {
		return err
	}
	defer e.Close()
	_, err = e.client.probe(ctx, dir, slot)
	return err
}
