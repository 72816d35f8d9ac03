package kvevents

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/ragpilot/ragpilot/engines/kvevents/internal/zmtp"
	"github.com/ragpilot/ragpilot/internal/base/pause"
)

// Subscriber follows the events of engines and gives them to sinks: in order, without repetition, and without holes
// as far as the engines can be asked again. Make one with [New], and let [Subscriber.Run] run.
type Subscriber struct {
	cfg  Config
	away time.Duration // how long a publisher that connected to us may be gone before it is forgotten

	meeting sync.Mutex // one publisher is met at a time; taken before mu

	mu      sync.Mutex // guards what follows
	streams map[Publisher]*stream
	order   []*stream
	errs    map[string]error // by source: why there is no connection
	running bool
	owners  sync.WaitGroup // goroutines of Run
}

// New checks the configuration. It connects to nothing.
func New(cfg Config) (*Subscriber, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Subscriber{cfg: cfg, away: away, streams: make(map[Publisher]*stream), errs: make(map[string]error)}, nil
}

// Run follows all sources until ctx ends, and returns nil then. Connections that fail are made again. It returns an
// error at once if it cannot listen on a source's endpoint. All it has started has ended when it returns; it must be
// called once.
func (s *Subscriber) Run(ctx context.Context) error {
	s.mu.Lock()
	ran := s.running
	s.running = true
	s.mu.Unlock()
	if ran {
		return errors.New("kvevents: Run was called before")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer s.owners.Wait()
	defer cancel()
	if slices.ContainsFunc(s.cfg.Sources, func(src Source) bool { return src.Listen }) {
		s.owners.Go(func() { s.sweep(ctx) })
	}
	for _, src := range s.cfg.Sources {
		at, err := zmtp.Parse(src.Endpoint, src.Listen)
		if err != nil {
			return err
		}
		if !src.Listen {
			s.owners.Go(func() { s.follow(ctx, src, at) })
			continue
		}
		l, err := zmtp.Listen(ctx, at)
		if err != nil {
			return fmt.Errorf("source %q: %w", src.Name, err)
		}
		s.owners.Go(func() {
			zmtp.Serve(ctx, l, 2*s.cfg.MaxPublishers, &s.owners, func(c net.Conn) { s.welcome(ctx, &src, c) })
		})
	}
	<-ctx.Done()
	return nil
}

// Status returns what is known of each publisher, in the order in which they were met. Sources without a publisher
// yet have none.
func (s *Subscriber) Status() []Status {
	s.mu.Lock()
	streams := slices.Clone(s.order)
	s.mu.Unlock()
	list := make([]Status, len(streams))
	for i, st := range streams {
		list[i] = st.h.snapshot()
		st.mu.Lock()
		list[i].PublishedTopic = st.topic
		st.mu.Unlock()
		s.mu.Lock()
		if err := s.errs[list[i].Source]; err != nil && !list[i].Connected {
			list[i].Err = err
		}
		s.mu.Unlock()
	}
	return list
}

// Resync has the engine's history asked for once more, of all publishers of a source, if their replay buffers still
// hold all of it. It returns at once.
func (s *Subscriber) Resync(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, st := range s.streams {
		if p.Source == source {
			st.resync.Store(true)
			st.wake()
		}
	}
}

// stream returns the stream of a publisher, nil if there are too many. If the publisher connected to us, the stream is
// attached to that connection, whose number is returned: from then on it is not forgotten.
func (s *Subscriber) stream(ctx context.Context, pub Publisher, src *Source) (st *stream, conn uint64) {
	s.meeting.Lock()
	defer s.meeting.Unlock()
	s.mu.Lock()
	st, ok := s.streams[pub]
	var gone []*stream
	room := true
	switch {
	case ok && src.Listen:
		conn = st.attach()
	case !ok && src.Listen:
		gone = s.forget(time.Now())
		if first := s.first(); first != nil && s.guests() >= s.cfg.MaxPublishers {
			s.remove(first)
			gone = append(gone, first)
		}
		room = s.guests() < s.cfg.MaxPublishers
	}
	s.mu.Unlock()
	s.bury(gone)
	if ok {
		return st, conn
	}
	if !room {
		return nil, 0
	}
	h := newHistory(pub, s.cfg.Sink(pub), s.replayer(pub, src), time.Now)
	h.firstSync = s.cfg.Resync
	if s.cfg.StartTime != nil {
		h.started = func(ctx context.Context) (float64, error) {
			ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
			defer cancel()
			return s.cfg.StartTime(ctx, pub)
		}
	}
	st = newStream(h, &s.cfg)
	ctx, st.end = context.WithCancel(ctx)
	if src.Listen {
		conn = st.attach()
	}
	s.mu.Lock()
	s.streams[pub] = st
	s.order = append(s.order, st)
	s.mu.Unlock()
	s.owners.Go(func() { st.run(ctx) })
	return st, conn
}

// guests is the number of streams of publishers that connected to us. s.mu is held.
func (s *Subscriber) guests() (n int) {
	for _, st := range s.order {
		if st.guest() {
			n++
		}
	}
	return n
}

// away is how long a publisher that connected to us may be gone before it is forgotten: engines that are started again elsewhere
// have other topics.
const away = time.Minute

// sweep forgets publishers that have been gone for long, until ctx ends.
func (s *Subscriber) sweep(ctx context.Context) {
	tick := time.NewTicker(s.away / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.meeting.Lock()
		s.mu.Lock()
		gone := s.forget(time.Now())
		s.mu.Unlock()
		s.bury(gone)
		s.meeting.Unlock()
	}
}

// forget removes the streams of publishers that connected to us and have been gone for long. s.mu is held.
func (s *Subscriber) forget(now time.Time) (gone []*stream) {
	for _, st := range slices.Clone(s.order) {
		if left, is := st.left(); is && now.Sub(left) >= s.away {
			s.remove(st)
			gone = append(gone, st)
		}
	}
	return gone
}

// first returns the stream of the publisher that had connected to us and has gone before all others, nil if none has. s.mu is held.
func (s *Subscriber) first() (first *stream) {
	var since time.Time
	for _, st := range s.order {
		if left, is := st.left(); is && (first == nil || left.Before(since)) {
			first, since = st, left
		}
	}
	return first
}

// remove takes a stream off the list, and has it end after the call. s.mu is held.
func (s *Subscriber) remove(st *stream) {
	st.forgotten.Store(true)
	st.end()
	delete(s.streams, st.h.pub)
	s.order = slices.DeleteFunc(s.order, func(x *stream) bool { return x == st })
}

// bury waits for the end of streams that were removed, and reports it. s.meeting is held: none is met again before.
func (s *Subscriber) bury(gone []*stream) {
	for _, st := range gone {
		<-st.ended
		if s.cfg.Forgotten != nil {
			s.cfg.Forgotten(st.h.pub)
		}
	}
}

func (s *Subscriber) replayer(pub Publisher, src *Source) replayer {
	endpoint, own := src.Replay, !src.Listen
	if src.Listen && s.cfg.ReplayEndpoint != nil {
		endpoint, own = s.cfg.ReplayEndpoint(pub), true
	}
	if endpoint == "" {
		return nil
	}
	to, err := zmtp.Parse(endpoint, false)
	if err != nil {
		return nil
	}
	d := &dealer{to: to, timeout: s.cfg.Timeout, limit: s.cfg.MaxMessage, topic: pub.Topic}
	if !own {
		d.alone = func() bool { return s.publishers(src.Name) <= 1 }
	}
	return d
}

// publishers is the number of those that are known of a source.
func (s *Subscriber) publishers(source string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.streams {
		if p.Source == source {
			n++
		}
	}
	return n
}

// follow dials an engine, again and again.
func (s *Subscriber) follow(ctx context.Context, src Source, at zmtp.Address) {
	st, _ := s.stream(ctx, Publisher{Source: src.Name, Rank: src.Rank}, &src)
	wait := s.cfg.Backoff
	for ctx.Err() == nil {
		began := time.Now()
		err := s.once(ctx, st, &src, at)
		s.mu.Lock()
		s.errs[src.Name] = err
		s.mu.Unlock()
		if time.Since(began) > s.cfg.MaxBackoff {
			wait = s.cfg.Backoff
		}
		pause.For(ctx, wait-time.Duration(rand.Int64N(int64(wait)/2+1)))
		wait = min(2*wait, s.cfg.MaxBackoff)
	}
}

// once follows one connection to its end.
func (s *Subscriber) once(ctx context.Context, st *stream, src *Source, at zmtp.Address) error {
	l, err := zmtp.Dial(ctx, zmq4.Sub, at, s.cfg.Timeout, s.cfg.MaxMessage)
	if err != nil {
		return err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	if err := l.Send(append([]byte{1}, src.Topic...)); err != nil {
		return err
	}
	conn := st.attach()
	defer st.detach(conn)
	for {
		frames, err := l.Receive()
		if err != nil {
			return err
		}
		s.push(st, conn, src, frames)
	}
}

// push checks the frames of a message: topic, number, payload.
func (s *Subscriber) push(st *stream, conn uint64, src *Source, frames [][]byte) {
	if len(frames) != 3 || len(frames[1]) != 8 {
		st.h.note(func(s *Status) { s.BadFrames++ })
		return
	}
	if !strings.HasPrefix(string(frames[0]), src.Topic) || !st.accept(frames[0]) {
		st.h.note(func(s *Status) { s.WrongTopic++ })
		return
	}
	st.push(item{conn, binary.BigEndian.Uint64(frames[1]), frames[2]})
}

// welcome follows a connection that an engine made to its end.
func (s *Subscriber) welcome(ctx context.Context, src *Source, c net.Conn) {
	l, err := zmtp.Open(ctx, c, zmq4.Sub, true, s.cfg.Timeout, s.cfg.MaxMessage)
	if err != nil {
		return
	}
	if l.Send(append([]byte{1}, src.Topic...)) != nil {
		return
	}
	var st *stream
	var conn uint64
	for {
		frames, err := l.Receive()
		if err != nil {
			break
		}
		if st == nil {
			if st, conn = s.meet(ctx, src, frames); st == nil {
				return
			}
		}
		if st.vacant(conn) { // another one had its topic
			if st, conn = s.stream(ctx, st.h.pub, src); st == nil {
				return
			}
		}
		s.push(st, conn, src, frames)
	}
	if st != nil {
		st.detach(conn)
	}
}

// meet returns the stream of the publisher that a first message is from, with the number of its connection, or nil if it
// is from none.
func (s *Subscriber) meet(ctx context.Context, src *Source, frames [][]byte) (*stream, uint64) {
	const longest = 1024
	if len(frames) != 3 || len(frames[0]) > longest || !strings.HasPrefix(string(frames[0]), src.Topic) {
		return nil, 0
	}
	return s.stream(ctx, Publisher{Source: src.Name, Topic: string(frames[0]), Rank: src.Rank}, src)
}
