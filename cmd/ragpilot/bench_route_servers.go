package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/llamacpp"
	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/internal/lab/load"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

// serverFlags are the flags of bench route that name real replicas.
type serverFlags struct {
	urls             []string
	reset, evictions string
	followSlots      bool
}

func (f *serverFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.urls, "engine", nil, "base `URL` of an OpenAI-compatible replica, in place of simulated ones; once for each")
	flags.StringVar(&f.reset, "reset", "",
		"shell `COMMAND` that empties or restarts the real replicas, run before each run; without it the prompts of each run have a first "+
			"line of their own")
	flags.StringVar(&f.evictions, "evictions", "",
		"listen on `ADDRESS` for what real replicas lose, posted to /N/evict by the one of the Nth --engine, from 0")
	flags.BoolVar(&f.followSlots, "follow-slots", true,
		"follow the slots of llama.cpp servers; without it they are believed to keep every prompt")
}

// names are the flags that need --engine.
func (*serverFlags) names() []string { return []string{"reset", "evictions", "follow-slots"} }

func (f *serverFlags) check() error {
	if f.evictions != "" && f.reset == "" {
		return fmt.Errorf("--evictions %s: only with --reset: a request has the same ID in every run", f.evictions)
	}
	return nil
}

// servers are real replicas.
type servers struct {
	flags *routeFlags
	lost  *evictions // nil: none listens
	about string     // what they are; known after the first run began
	count contextpilot.Tokenizer
}

// drive prepares runs in real time. Runs do not meet in the replicas' caches: these are reset, or each run has a first line of
// its own.
func (r *routes) drive() (closeAll func(), err error) {
	s := &servers{flags: r.flags}
	closeAll = func() {}
	if addr := r.flags.servers.evictions; addr != "" {
		if s.lost, err = listenForEvictions(addr); err != nil {
			return nil, err
		}
		closeAll = s.lost.close
	}
	r.counts = []int{len(r.flags.servers.urls)}
	r.run = func(ctx context.Context, j load.Job, _ int, arm load.Arm) (load.FleetRun, error) {
		run, err := s.run(ctx, j, arm)
		r.engine = s.about
		return run, err
	}
	return closeAll, nil
}

// run is one run; no replica has its prompts in the cache.
func (s *servers) run(ctx context.Context, j load.Job, arm load.Arm) (load.FleetRun, error) {
	if command := s.flags.servers.reset; command == "" {
		j.Salt = "Run " + nonce() + "."
	} else if err := reset(ctx, command); err != nil {
		return load.FleetRun{}, err
	}
	list, closeAll, err := s.open(ctx, j)
	if err != nil {
		return load.FleetRun{}, err
	}
	defer closeAll()
	j.Settings.Tokenizer = s.count
	return j.DriveFleet(ctx, list, arm.Routing, s.flags.router)
}

// reset runs the command, whose output goes to standard error.
func reset(ctx context.Context, command string) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.WaitDelay = time.Second // servers that it started may hold its output
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("--reset %q: %w", command, err)
	}
	return nil
}

// open returns new engines for the replicas, without state of an earlier run.
func (s *servers) open(ctx context.Context, j load.Job) (list []engines.Engine, closeAll func(), err error) {
	var closers []func() error
	closeThem := func() {
		for _, c := range closers {
			_ = c()
		}
	}
	defer func() {
		if err != nil {
			closeThem()
		}
	}()
	var about []string
	var plain []*openai.Engine
	for _, url := range s.flags.servers.urls {
		one := s.flags.real
		one.engine = url
		chats, err := one.open()
		if err != nil {
			return nil, nil, err
		}
		plain, closers = append(plain, chats), append(closers, chats.Close)
		e, what, err := s.follow(ctx, chats, one)
		if err != nil {
			return nil, nil, err
		}
		about = append(about, what)
		if e == nil {
			list = append(list, chats)
			continue
		}
		list, closers = append(list, e), append(closers, e.Close)
		if err := s.learnCounts(chats, j); err != nil {
			return nil, nil, err
		}
	}
	s.about = counted(about)
	if s.lost != nil {
		s.lost.reportTo(plain)
	}
	return list, closeThem, nil
}

// learnCounts makes the first server that is followed count the trace's texts, once for all runs: it reports its cache in tokens.
func (s *servers) learnCounts(chats *openai.Engine, j load.Job) (err error) {
	if s.count == nil {
		s.count, err = countAll(chats, j)
	}
	return err
}

// follow returns an engine that follows the server's slots, nil if it is no llama.cpp or that is not wanted, and what the
// server says that it is.
func (s *servers) follow(ctx context.Context, chats *openai.Engine, f engineFlags) (*llamacpp.Engine, string, error) {
	m, err := modelOf(ctx, chats)
	if err != nil {
		return nil, "", err
	}
	if m.Owner != "llamacpp" {
		return nil, m.String(), nil
	}
	e, err := llamacpp.New(llamacpp.Config{Server: openai.Config{BaseURL: f.engine, Model: f.model, APIKey: f.apiKey}})
	if err != nil {
		return nil, "", fmt.Errorf("--engine: %w", err)
	}
	info, err := e.Info(ctx)
	if err != nil {
		return nil, "", errors.Join(err, e.Close())
	}
	what := fmt.Sprintf("llama.cpp %s (%s, %d slots of %d tokens", info.Build, path.Base(info.Model), info.Slots, info.ContextSlot)
	if !s.flags.servers.followSlots {
		return nil, what + ", not followed)", e.Close()
	}
	return e, what + ")", nil
}

// served is a model that a server has, and who says to own it: for many servers that is what they are.
type served struct {
	ID    string `json:"id"`
	Owner string `json:"owned_by"`
}

func (m served) String() string {
	if m.Owner == "" {
		return m.ID
	}
	return fmt.Sprintf("%s (%s)", m.ID, m.Owner)
}

// modelOf returns the first model of a server's list; of one that has no list, its name. It fails only if the server cannot be reached.
func modelOf(ctx context.Context, chats *openai.Engine) (served, error) {
	var models struct {
		Data []served `json:"data"`
	}
	body, err := chats.Do(ctx, http.MethodGet, "/v1/models", nil)
	if errors.Is(err, engines.ErrUnreachable) {
		return served{}, err
	}
	_ = json.Unmarshal(body, &models) // what is no list names no model
	if len(models.Data) == 0 {
		return served{ID: chats.Name()}, nil
	}
	return models.Data[0], nil
}

// counted names equal replicas once: "2 × x".
func counted(names []string) string {
	var out []string
	for i := 0; i < len(names); {
		n := 1
		for i+n < len(names) && names[i+n] == names[i] {
			n++
		}
		out = append(out, fmt.Sprintf("%d × %s", n, names[i]))
		i += n
	}
	return strings.Join(out, ", ")
}

// counts is a tokenizer that has asked a server for the texts of a trace beforehand, so that planning does not wait for one that is
// busy. Other texts, such as notes, count as by [tokens.Count], in the server's measure on average.
type counts struct {
	known map[string]int
	scale float64 // the server's tokens for each one of ours
}

var _ contextpilot.Tokenizer = counts{}

func (c counts) Count(text string) int {
	if n, ok := c.known[text]; ok {
		return n
	}
	return int(math.Round(c.scale * float64(tokens.Count(text))))
}

// countTimeout bounds one question to the server.
const countTimeout = 10 * time.Second

// countAll asks for all texts that the job's prompts are made of.
func countAll(server *openai.Engine, j load.Job) (counts, error) {
	t, err := server.Tokenizer(openai.TokenizerConfig{Timeout: countTimeout})
	if err != nil {
		return counts{}, err
	}
	c := counts{known: map[string]int{}}
	ours, theirs := 0, 0
	count := func(text string) {
		if _, ok := c.known[text]; !ok {
			c.known[text] = t.Count(text)
			ours += tokens.Count(text)
			theirs += c.known[text]
		}
	}
	count(trace.System)
	for _, q := range j.Trace {
		for _, id := range q.Docs {
			if text, ok := j.Blocks.Text(id); ok {
				count(trace.Doc(id, text))
			}
		}
		count(trace.Question(q.Query))
		count(trace.Answer(q))
	}
	if n := t.Stats().Estimated; n > 0 {
		return counts{}, fmt.Errorf("%s: %d texts were not counted", server.Name(), n)
	}
	c.scale = float64(theirs) / float64(max(ours, 1))
	return c, nil
}

// evictions takes what replicas' caches lose: POST /N/evict with the IDs of requests, as for a sidecar, from replica N.
type evictions struct {
	server *http.Server
	ended  chan struct{} // closed when server serves no more
	mu     sync.Mutex
	to     []*openai.Engine // guarded by mu
}

// listenForEvictions serves until close is called.
func listenForEvictions(address string) (*evictions, error) {
	listener, err := listen(context.Background(), "--evictions", address)
	if err != nil {
		return nil, err
	}
	x := &evictions{ended: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{replica}/evict", x.serve)
	x.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(x.ended)
		_ = x.server.Serve(listener)
	}()
	return x, nil
}

func (x *evictions) close() {
	_ = x.server.Close()
	<-x.ended
}

// reportTo says which engines report the evictions from now on.
func (x *evictions) reportTo(list []*openai.Engine) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.to = list
}

// maxEvictions bounds the body of one call in bytes.
const maxEvictions = 16 << 20

func (x *evictions) serve(w http.ResponseWriter, r *http.Request) {
	var body struct {
		IDs []string `json:"request_ids"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxEvictions)).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	engine, err := x.engine(r.PathValue("replica"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	events := make([]contextpilot.Event, len(body.IDs))
	for i, id := range body.IDs {
		events[i] = contextpilot.Event{Kind: contextpilot.Gone, Request: id}
	}
	engine.Report(events...)
}

func (x *evictions) engine(number string) (*openai.Engine, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil, fmt.Errorf("replica %q: %w", number, errors.Unwrap(err))
	}
	if n < 0 || n >= len(x.to) {
		return nil, fmt.Errorf("replica %d: there are %d", n, len(x.to))
	}
	return x.to[n], nil
}
