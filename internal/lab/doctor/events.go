package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/base/pause"
)

// source is where one rank publishes.
type source struct {
	rank                    int
	endpoint, replay, topic string
	mayDial                 bool // the endpoint names a host: the engine may connect to it
}

func (s *source) name() string { return fmt.Sprintf("rank %d", s.rank) }

// listening is the subscription to an engine's events while the probes are under way.
type listening struct {
	exam    *exam
	sources []source
	past    []past // of each source, from before the probes
	replays []error
	sub     *kvevents.Subscriber
	heard   *heard
	stop    context.CancelFunc
	done    chan error
	before  []uint64 // live messages of each source before the probes
}

// heard is a sink that keeps the tokens of what was stored.
type heard struct {
	mu     sync.Mutex
	stored [][]uint32 // guarded by mu
	tokens int        // of these, bounded
	events int
}

const mostHeard = 1 << 20 // tokens that are kept

// Apply implements [kvevents.Sink].
func (h *heard) Apply(b *kvevents.Batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events += len(b.Events)
	for i := range b.Events {
		e := &b.Events[i]
		if e.Kind != kvevents.Stored || len(e.Tokens) == 0 || h.tokens+len(e.Tokens) > mostHeard {
			continue
		}
		tokens := make([]uint32, len(e.Tokens))
		for j, t := range e.Tokens {
			tokens[j] = uint32(t)
		}
		h.tokens += len(tokens)
		h.stored = append(h.stored, tokens)
	}
}

// Clear implements [kvevents.Sink].
func (h *heard) Clear(kvevents.Cause) {}

// Complete implements [kvevents.Sink].
func (h *heard) Complete(bool) {}

// of reports whether something was stored that is a part of a prompt.
func (h *heard) of(prompt []uint32) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, tokens := range h.stored {
		if contains(prompt, tokens) {
			return true
		}
	}
	return false
}

func contains(all, part []uint32) bool {
	for i := 0; i+len(part) <= len(all); i++ {
		if differ(all[i:], part) == len(part) {
			return true
		}
	}
	return false
}

const publish = `start the server with --kv-events-config ` +
	`'{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5558",` +
	`"topic":"kv@HOST:PORT@MODEL"}'`

// openEvents finds the engine's events and subscribes to them. It waits until all sources are connected, or Config.Wait.
func (x *exam) openEvents(ctx context.Context) *listening {
	l := &listening{exam: x, sources: x.facts.sources}
	if x.cfg.Events != "" {
		l.sources = []source{{
			endpoint: x.cfg.Events, replay: x.cfg.Replay, topic: x.cfg.Topic,
			mayDial: strings.HasPrefix(x.cfg.Events, "tcp://"),
		}}
	}
	if len(l.sources) == 0 {
		return l
	}
	for i := range l.sources {
		var p past
		err := errNone
		if l.sources[i].replay != "" {
			p, err = replayed(ctx, l.sources[i].replay, 0, x.cfg.Wait)
		}
		l.past, l.replays = append(l.past, p), append(l.replays, err)
	}
	l.subscribe(ctx)
	return l
}

// errNone: there is no replay endpoint.
var errNone = errors.New("none")

func (l *listening) subscribe(ctx context.Context) {
	l.heard = &heard{}
	cfg := kvevents.Config{
		Sink:    func(kvevents.Publisher) kvevents.Sink { return l.heard },
		Timeout: l.exam.cfg.Wait, Probe: -1, MaxBackoff: time.Second,
	}
	for i := range l.sources {
		s := &l.sources[i]
		cfg.Sources = append(cfg.Sources, kvevents.Source{Name: s.name(), Endpoint: s.endpoint, Topic: s.topic, Rank: kvevents.AnyRank})
	}
	l.done = make(chan error, 1)
	sub, err := kvevents.New(cfg)
	if err != nil {
		l.done <- err
		return
	}
	l.sub = sub
	ctx, l.stop = context.WithCancel(ctx)
	go func() { l.done <- sub.Run(ctx) }() // ends in close
	l.await(ctx, func() bool {
		list := l.status()
		up, failed := 0, 0
		for i := range list {
			switch {
			case list[i].Connected:
				up++
			case list[i].Err != nil:
				failed++
			}
		}
		return up+failed == len(l.sources)
	})
	l.before = make([]uint64, len(l.sources))
	for i, s := range l.status() {
		l.before[i] = s.Messages
	}
}

// status returns that of each source. The subscriber has the order in which it met them, and none of those that it has not met.
func (l *listening) status() []kvevents.Status {
	list := make([]kvevents.Status, len(l.sources))
	for _, s := range l.sub.Status() {
		if i := slices.IndexFunc(l.sources, func(o source) bool { return o.name() == s.Source }); i >= 0 {
			list[i] = s
		}
	}
	return list
}

// await looks at the subscription until ok, or for Config.Wait.
func (l *listening) await(ctx context.Context, ok func() bool) {
	limit := time.Now().Add(l.exam.cfg.Wait)
	for ctx.Err() == nil && time.Now().Before(limit) && !ok() {
		pause.For(ctx, 10*time.Millisecond)
	}
}

// came returns how many live messages of all sources came since the probes began, and from those of one source.
func (l *listening) came() (all uint64, from []uint64) {
	from = make([]uint64, len(l.sources))
	for i, s := range l.status() {
		from[i] = s.Messages - l.before[i]
		all += from[i]
	}
	return all, from
}

// close waits for the events of the probes, ends the subscription and says what was found.
func (l *listening) close(ctx context.Context) {
	x := l.exam
	if x.kind == LlamaCPP && x.cfg.Events == "" {
		x.add("events", OK, "llama.cpp publishes none; the engine for it follows the slots", "")
		return
	}
	if len(l.sources) == 0 {
		l.none()
		return
	}
	list := make([]string, len(l.sources))
	for i := range l.sources {
		list[i] = l.sources[i].name() + " at " + l.sources[i].endpoint
	}
	if l.sub == nil {
		x.add("events", Problem, fmt.Sprintf("%s: %v", strings.Join(list, ", "), <-l.done),
			"correct the endpoint in the server's --kv-events-config, or --events")
		return
	}
	defer func() {
		l.stop()
		if err := <-l.done; err != nil { // it listens nowhere: there is none
			x.add("events", Problem, err.Error(), "correct the endpoint")
		}
	}()
	x.add("events", OK, strings.Join(list, ", "), "")
	if x.second.err == nil && x.second.sent != "" {
		l.await(ctx, func() bool { all, _ := l.came(); return all > 0 })
	}
	status := l.status()
	l.connection(ctx, status)
	l.replay()
	l.decoding(status)
}

// none says why there are no events.
func (l *listening) none() {
	x := l.exam
	switch {
	case x.facts.cacheOff:
		x.add("events", NotKnown, "none while prefix caching is off", "")
	case !x.facts.publishes:
		x.add("events", NotKnown, "this server does not say whether it publishes any", "give --events, if it does")
	case x.facts.sourcesErr != nil:
		x.add("events", NotKnown, "the server does not say where they are: "+short(x.facts.sourcesErr),
			"give --events, if the server publishes them; releases before vLLM 0.32 do not say where")
	default:
		do := publish
		if x.facts.own() {
			do = "start it with --kv-events tcp://HOST:5557 --kv-replay tcp://HOST:5558"
		}
		x.add("events", Warning, "the server publishes none: evictions are not heard of, the index ages prompts instead", do)
	}
}

// connection says whether live events can be had, and whether they are those of the probes.
func (l *listening) connection(ctx context.Context, status []kvevents.Status) {
	x := l.exam
	const name, live = "event connection", "live events"
	for i, s := range status {
		if s.Connected {
			continue
		}
		saw := fmt.Sprintf("%s: no listener at %s: %v", l.sources[i].name(), l.sources[i].endpoint, s.Err)
		if l.connects(ctx, i) {
			x.add(name, Problem, saw+", while its replay endpoint has batches: the engine connects to this address instead of listening there",
				l.listen(i))
		} else {
			x.add(name, Problem, saw,
				"let the port through (firewall, container), or correct the endpoint; an engine listens only on one with * or ipc://")
		}
		x.add(live, NotKnown, "no connection", "")
		return
	}
	x.add(name, OK, fmt.Sprintf("%d of %d connected", len(status), len(l.sources)), "")
	if x.second.sent == "" || x.second.err != nil {
		x.add(live, NotKnown, "no probes that would cause them", "")
		return
	}
	if l.unheard(ctx, live) {
		return
	}
	came, _ := l.came()
	switch {
	case came == 0 && x.facts.cacheOff:
		x.add(live, NotKnown, "none while prefix caching is off", "")
	case came == 0:
		x.add(live, Problem, fmt.Sprintf("none within %v of the probes", x.cfg.Wait),
			`set "enable_kv_cache_events":true and "publisher":"zmq" in --kv-events-config; if a topic is given, it must be the engine's`)
	default:
		l.ours(ctx, live, came)
	}
}

// unheard reports whether some rank has published events that we did not receive.
func (l *listening) unheard(ctx context.Context, name string) bool {
	all, from := l.came()
	for i := range l.sources {
		saw := fmt.Sprintf("%s: none within %v of the probes, while its replay endpoint has batches: who listens at %s is not this ",
			l.sources[i].name(), l.exam.cfg.Wait, l.sources[i].endpoint)
		switch {
		case from[i] > 0:
		case all == 0 && l.connects(ctx, i):
			l.exam.add(name, Problem, saw+"engine", l.listen(i))
			return true
		case all > 0 && l.published(ctx, i) > 0:
			l.await(ctx, func() bool { _, from = l.came(); return from[i] > 0 })
			if from[i] > 0 {
				continue
			}
			do := "correct the endpoint and the topic of this rank"
			if l.sources[i].mayDial {
				do = l.listen(i)
			}
			l.exam.add(name, Problem, saw+"rank", do)
			return true
		}
	}
	return false
}

// ours says whether the events that came are those of the probes.
func (l *listening) ours(ctx context.Context, name string, came uint64) {
	x := l.exam
	l.heard.mu.Lock()
	events := l.heard.events
	l.heard.mu.Unlock()
	saw := fmt.Sprintf("%d batches with %d events since the first probe", came, events)
	if x.facts.template == nil {
		x.add(name, OK, saw+"; whose they are is not known without a tokenizer", "")
		return
	}
	prompt, err := x.facts.template(ctx, message(x.text))
	switch {
	case events == 0:
		x.add(name, NotKnown, saw+": see event decoding", "")
	case x.moving || x.strange || x.otherCount:
		x.add(name, OK, saw+"; whose they are is not known, see chat template and tokenizer", "")
	case err != nil:
		x.add(name, OK, saw, "")
	case l.heard.of(prompt):
		x.add(name, OK, saw+", with the tokens of the probe", "")
	default:
		x.add(name, Problem, saw+", none with tokens of the probe", "correct the endpoint: another engine publishes there")
	}
}

// connects reports whether an engine that named a host has published without our hearing it.
func (l *listening) connects(ctx context.Context, i int) bool {
	return l.sources[i].mayDial && l.replays[i] == nil && l.past[i].batches+l.published(ctx, i) > 0
}

// published returns how many batches a source's replay has from after the probes began; 0 if it cannot be asked.
func (l *listening) published(ctx context.Context, i int) int {
	if l.replays[i] != nil {
		return 0
	}
	p, err := replayed(ctx, l.sources[i].replay, l.past[i].next(), l.exam.cfg.Wait)
	if err != nil {
		return 0
	}
	return p.batches
}

// listen is what to do about an engine that connects.
func (l *listening) listen(i int) string {
	at := l.sources[i].endpoint
	port := at[strings.LastIndexByte(at, ':')+1:]
	return fmt.Sprintf(`in the server's --kv-events-config write "endpoint":"tcp://*:%s" (on one machine also "ipc:///PATH") and restart `+
		`it; or keep %s and listen there (kvevents.Source.Listen)`, port, at)
}

func (l *listening) replay() {
	const name = "event replay"
	x := l.exam
	var batches int
	for i := range l.sources {
		err, p := l.replays[i], l.past[i]
		switch {
		case errors.Is(err, errNone):
			x.add(name, Warning, l.sources[i].name()+" has no replay endpoint: a gap in the events cannot be filled",
				`add "replay_endpoint":"tcp://*:5558" to --kv-events-config; with --events give --replay, too`)
			return
		case err != nil:
			x.add(name, Problem, fmt.Sprintf("%s, %s: %v", l.sources[i].name(), l.sources[i].replay, err),
				"let the port through (firewall, container), or correct the endpoint")
			return
		case p.holes > 0 || p.batches > 0 && p.first > 0:
			x.add(name, Warning,
				fmt.Sprintf("%s: %d batches from number %d on, %d missing between: what the cache held before is not known", l.sources[i].name(),
					p.batches, p.first, p.holes), "start ragpilot with the engine, or raise buffer_steps")
			return
		}
		batches += p.batches
	}
	x.add(name, OK, fmt.Sprintf("%d batches, from the engine's start on", batches), "")
}

// decoding says whether what came could be read.
func (l *listening) decoding(status []kvevents.Status) {
	const name = "event decoding"
	var c kvevents.Counters
	for i := range status {
		c.Messages += status[i].Messages
		c.DecodeErrors += status[i].DecodeErrors + status[i].BadFrames
		c.Malformed += status[i].Malformed
		c.UnknownEvents += status[i].UnknownEvents
	}
	past, bad := 0, 0
	for i := range l.past {
		past += l.past[i].batches
		bad += l.past[i].bad
	}
	saw := fmt.Sprintf("%d live and %d replayed batches", c.Messages, past)
	switch {
	case c.Messages == 0 && past == 0:
		l.exam.add(name, NotKnown, "nothing came", "")
	case c.DecodeErrors+c.Malformed > 0 || bad > 0:
		l.exam.add(name, Problem, fmt.Sprintf("%s, %d of them could not be read", saw, int(c.DecodeErrors+c.Malformed)+bad),
			"see which releases engines/kvevents reads; is it an engine's event publisher at all?")
	case c.UnknownEvents > 0:
		l.exam.add(name, Warning, fmt.Sprintf("%s, with %d events of unknown types", saw, c.UnknownEvents),
			"the release is newer than this ragpilot: what it adds is not followed")
	default:
		l.exam.add(name, OK, saw+" were read", "")
	}
}
