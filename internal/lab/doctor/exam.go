package doctor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/openai"
)

// Run examines a server. Errors wrap [ErrConfig], or are that of ctx; whatever is wrong with the server stands in the
// report. It takes as long as the probes, and up to Config.Wait for each thing that does not come. All that it starts
// has ended when it returns.
func Run(ctx context.Context, config Config) (*Report, error) {
	cfg, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	x, err := newExam(cfg)
	if err != nil {
		return nil, err
	}
	defer x.client.CloseIdleConnections()
	x.run(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &x.report, nil
}

// exam is one examination on its way.
type exam struct {
	cfg    Config
	report Report
	seen   *observer
	client *http.Client
	server openai.Config
	chats  *openai.Engine

	models []model
	model  string // that probes name
	kind   Kind
	facts  facts
	block  block

	text          string // of the probe
	plain         bool   // answers are not streamed, because streams have no usage
	before        counters
	hitsErr       error
	first, second answer
	strange       bool // the tokenizer is not the model's
	moving        bool // the chat template changes from one time to the next
	sameCount     bool // its tokenizer counts the tokens of a chat as its answers do
	otherCount    bool // it does not
	points        bool // the engine goes on only from where prompts have ended or parted
}

func newExam(cfg Config) (*exam, error) {
	next := cfg.Transport
	if next == nil {
		own := &http.Transport{Proxy: http.ProxyFromEnvironment}
		own.DisableKeepAlives = true // llama.cpp closes idle connections, and a POST that meets that is not repeated
		next = own
	}
	x := &exam{cfg: cfg, kind: Other, seen: &observer{next: next, now: cfg.Now}}
	x.client = &http.Client{Transport: x.seen}
	x.report.Engine = redacted(cfg.Engine)
	x.server = openai.Config{BaseURL: cfg.Engine, Model: cfg.Model, APIKey: cfg.APIKey, HTTPClient: x.client, IDs: openai.IDHeader}
	var err error
	if x.chats, err = openai.New(x.server); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return x, nil
}

func (x *exam) add(name string, result Result, saw, do string) {
	x.report.Checks = append(x.report.Checks, Check{Name: name, Result: result, Saw: saw, Do: do})
}

// run goes through all checks, in the order in which they depend on each other.
func (x *exam) run(ctx context.Context) {
	if !x.health(ctx) {
		x.report.Kind = x.kind
		x.sidecar(ctx)
		return
	}
	x.recognise(ctx)
	x.served()
	x.window()
	events := x.openEvents(ctx)
	if !x.cfg.NoProbe {
		x.probe(ctx)
	}
	x.tokenizer(ctx)
	x.template(ctx)
	x.caching(ctx)
	x.details()
	x.requestID()
	x.slotChecks(ctx)
	x.slotFiles(ctx) // the last one: it empties a slot
	x.clock()
	events.close(ctx)
	x.sidecar(ctx)
}

// health asks whether the server is there and well, and for its models.
func (x *exam) health(ctx context.Context) bool {
	body, err := x.chats.Do(ctx, http.MethodGet, "/v1/models", nil)
	status, refused := errors.AsType[*openai.StatusError](err)
	switch {
	case err == nil:
		var list struct {
			Data []model `json:"data"`
		}
		_ = json.Unmarshal(body, &list) // what is no list of models names none
		x.models = list.Data
	case refused && (status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden):
		x.add("health", Problem, fmt.Sprintf("GET /v1/models: %d: the server refuses the key", status.Code),
			"give --api-key, or RAGPILOT_API_KEY")
		return false
	case !refused:
		x.add("health", Problem, short(err), "start the server, or correct --engine; from a container, localhost is the container itself")
		return false
	}
	_, err = x.chats.Do(ctx, http.MethodGet, "/health", nil)
	status, refused = errors.AsType[*openai.StatusError](err)
	switch {
	case err == nil:
		x.add("health", OK, "GET /health: 200", "")
	case refused && status.Code == http.StatusNotFound:
		x.add("health", OK, "it answers, and has no /health", "")
	default:
		do := "wait until the model is loaded; else see the server's log"
		if body, err := x.chats.Do(ctx, http.MethodGet, "/readyz", nil); err == nil && bytes.Contains(body, []byte(`"status"`)) {
			do = "this seems to be a ragpilot serve: give it as --serve, and the engine behind it as --engine"
		}
		x.add("health", Problem, short(err), do)
		return false
	}
	return true
}

// short is an error on one line, without the address of the engine, which the report has anyway.
func short(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if rest, ok := strings.CutPrefix(text, "engine at "); ok {
		if _, cause, ok := strings.Cut(rest, ": "); ok {
			return cause
		}
	}
	return text
}

func (x *exam) recognise(ctx context.Context) {
	x.kind = kindOf(ctx, x.chats, x.models)
	if x.kind == LlamaCPP {
		x.server.IDs = openai.IDNowhere
	} else if x.kind != Other {
		x.server.IDs = openai.IDEverywhere // hosted services may refuse more than the header
	}
	x.model = x.cfg.Model
	if ids := x.ids(); len(ids) > 0 && !slices.Contains(ids, x.model) {
		x.model = ids[0]
	}
	x.server.Model = x.model
	chats, err := openai.New(x.server)
	if err == nil {
		x.chats = chats
		x.facts, err = look(ctx, x.kind, x.server, x.chats, x.cfg.SlotDir)
	}
	x.report.Kind, x.report.Version = x.kind, x.facts.version
	x.block = block{least: x.facts.block, most: x.facts.block}
	switch {
	case err != nil:
		x.add("engine", NotKnown, fmt.Sprintf("%s, which does not say more: %s", x.kind, short(err)), "")
	case x.kind == Other:
		x.add("engine", NotKnown, "none of vLLM, SGLang and llama.cpp: only what answers show is checked",
			"if it is one of these, give the address of the engine itself, not of a gateway")
	case x.facts.version == "":
		x.add("engine", OK, x.kind.String()+", version not known", "")
	default:
		x.add("engine", OK, x.kind.String()+" "+x.facts.version, "")
	}
}

func (x *exam) ids() []string {
	list := make([]string, len(x.models))
	for i, m := range x.models {
		list[i] = m.ID
	}
	return list
}

// served looks for the model that was asked for.
func (x *exam) served() {
	ids := x.ids()
	list := strings.Join(ids[:min(len(ids), 8)], ", ")
	if len(ids) > 8 {
		list += fmt.Sprintf(" and %d more", len(ids)-8)
	}
	switch {
	case len(ids) == 0:
		x.add("models", NotKnown, "the server lists none", "")
	case x.cfg.Model != "" && !slices.Contains(ids, x.cfg.Model) && x.kind == LlamaCPP:
		x.add("models", OK, fmt.Sprintf("served: %s; llama.cpp answers for %q, too", list, x.cfg.Model), "")
	case x.cfg.Model != "" && !slices.Contains(ids, x.cfg.Model):
		x.add("models", Problem, fmt.Sprintf("%q is not served; served: %s", x.cfg.Model, list),
			"name one of these, or start the server with --served-model-name")
	default:
		x.add("models", OK, "served: "+list, "")
	}
}

// window compares what the model can read, and what the cache can hold, with what is planned.
func (x *exam) window() {
	w, budget := x.facts.window, x.cfg.Budget
	for _, m := range x.models {
		if m.ID == x.model && w == 0 {
			w = m.Window
		}
	}
	x.facts.window = w
	size := fmt.Sprintf("%d tokens of prompt and answer", w)
	switch {
	case w == 0:
		x.add("window", NotKnown, "the server does not say how much the model reads", "")
	case budget > w:
		x.add("window", Problem, fmt.Sprintf("%s, below the budget of %d: full prompts are refused", size, budget),
			"lower the budget, or raise the window (vLLM --max-model-len, SGLang --context-length, llama.cpp -c, which is divided among the slots)")
	case budget == w:
		x.add("window", Warning, fmt.Sprintf("%s, all of it budget: no room for an answer", size), "lower the budget by the length of an answer")
	default:
		x.add("window", OK, size, "")
	}
	if x.facts.slots != nil || x.facts.capacity == 0 {
		return
	}
	need := cmp.Or(budget, x.cfg.ProbeTokens)
	size = fmt.Sprintf("%d tokens in all", x.facts.capacity)
	if x.facts.capacity < 2*need {
		x.add("cache size", Warning, fmt.Sprintf("%s: less than two prompts of %d", size, need),
			"give the cache more memory (vLLM --gpu-memory-utilization, SGLang --mem-fraction-static)")
		return
	}
	x.add("cache size", OK, size, "")
}

// message is a chat of one text.
func message(text string) []engines.Message {
	return []engines.Message{{Role: engines.User, Content: text}}
}
