package llamacpp

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Info is what the server says of itself (/props).
type Info struct {
	Build        string // the release, as far as its builder has set it
	Model        string // the path of the model's file, on the server's machine
	Alias        string
	Type         string // of most of its weights, for example "Q4_K_M"
	Slots        int
	ContextSlot  int  // tokens that one slot can hold
	Metrics      bool // whether Metrics can be asked
	SlotsVisible bool // whether the slots can be looked at; if not, doubts stay
	Sleeping     bool // the model is not in memory, and no cache is
	// Process names the server process. It is another one after a restart, unless the server's user has fixed it
	// (LLAMA_MEDIA_MARKER) or its release does not report it; then it is empty.
	Process string
	// Disk says what the tier of slot files does: "on", "not tried yet", or "off: " and why. Empty without [Config].SlotDir.
	Disk string
}

type propsJSON struct {
	Slots    int    `json:"total_slots"`
	Alias    string `json:"model_alias"`
	Model    string `json:"model_path"`
	Type     string `json:"model_ftype"`
	Build    string `json:"build_info"`
	Visible  bool   `json:"endpoint_slots"`
	Metrics  bool   `json:"endpoint_metrics"`
	Sleeping bool   `json:"is_sleeping"`
	Marker   string `json:"media_marker"`
	Defaults struct {
		Context int `json:"n_ctx"`
	} `json:"default_generation_settings"`
}

// maxSlots is more than any server has.
const maxSlots = 4096

// info asks for /props, which the server answers without waiting for its model.
func (c *client) info(ctx context.Context) (Info, error) {
	var p propsJSON
	if err := c.get(ctx, "/props", &p); err != nil {
		return Info{}, err
	}
	if p.Slots <= 0 || p.Slots > maxSlots {
		return Info{}, fmt.Errorf("engine %s: answer of /props: total_slots %d: not a llama-server with a model", c.chat.Name(), p.Slots)
	}
	info := Info{
		Build: p.Build, Model: p.Model, Alias: p.Alias, Type: p.Type, Slots: p.Slots, ContextSlot: p.Defaults.Context,
		Metrics: p.Metrics, SlotsVisible: p.Visible, Sleeping: p.Sleeping,
	}
	// The marker that stands for an image in a prompt is drawn by chance when the server starts.
	if strings.HasPrefix(p.Marker, "<__media_") && len(p.Marker) > len("<__media___>") {
		info.Process = p.Marker
	}
	return info, nil
}

// identity distinguishes one server process from another, with what else would make the book wrong.
func (i Info) identity() string {
	return fmt.Sprintf("%s %d %q %q", i.Process, i.Slots, i.Model, i.Build)
}

// slotJSON is one entry of /slots.
type slotJSON struct {
	ID     int  `json:"id"`
	Busy   bool `json:"is_processing"`
	Tokens int  `json:"n_prompt_tokens"` // of the sequence that the slot holds, generated ones included
}

// slots asks for /slots, which the server answers between two steps of its model.
func (c *client) slots(ctx context.Context) ([]slotJSON, error) {
	var s []slotJSON
	return s, c.get(ctx, "/slots", &s)
}

// Metrics is the server's own account by its names in /metrics, for example "llamacpp:prompt_tokens_cached_total".
type Metrics map[string]float64

// The names that have to do with the cache. Counters are since the server's start, in tokens; Processing and Deferred are
// requests now.
const (
	PromptTokens       = "llamacpp:prompt_tokens_total" // without cached ones
	PromptTokensCached = "llamacpp:prompt_tokens_cached_total"
	TokensPredicted    = "llamacpp:tokens_predicted_total"
	RequestsProcessing = "llamacpp:requests_processing"
	RequestsDeferred   = "llamacpp:requests_deferred"
)

// metrics asks for /metrics.
func (c *client) metrics(ctx context.Context) (Metrics, error) {
	data, err := c.call(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return nil, err
	}
	return parseMetrics(data), nil
}

// parseMetrics reads the lines "name value" of the Prometheus text format; lines with labels keep them in the name, others
// are left out.
func parseMetrics(data []byte) Metrics {
	m := Metrics{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		if v, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
			m[name] = v
		}
	}
	return m
}
