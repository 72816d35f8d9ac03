package publish

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/internal/zmtp"
)

// Defaults of [Config].
const (
	DefaultBuffer      = 10_000
	DefaultBufferBytes = 64 << 20
	DefaultIOTimeout   = time.Minute
)

// Bounds of what peers may ask for.
const (
	maxPeers   = 256      // of each socket
	maxRequest = 32 << 10 // bytes: a topic, or a number
	handshake  = 5 * time.Second
)

// Config holds the settings of a Publisher. Only Endpoint is needed.
type Config struct {
	// Endpoint is where subscribers connect: tcp://host:port or ipc://path. A host of * is all addresses, port 0 a free one.
	Endpoint string
	// Replay is where past batches can be asked for; empty: nowhere.
	Replay string
	// Topic stands before each message. By convention it is kv@host:port@model.
	Topic string
	// Rank is the engine's data-parallel rank, or [kvevents.NoRank].
	Rank int
	// Encoding is the form of events.
	Encoding Encoding
	// Buffer is how many batches are kept, and BufferBytes how long they may be together; 0: the defaults.
	Buffer, BufferBytes int
	// IOTimeout bounds each wait for a peer to take something; 0: the default.
	IOTimeout time.Duration
	// Now is the clock of batches; nil: time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() (Config, error) {
	for _, f := range []struct {
		name   string
		v      *int
		preset int
	}{{"Buffer", &c.Buffer, DefaultBuffer}, {"BufferBytes", &c.BufferBytes, DefaultBufferBytes}} {
		switch {
		case *f.v < 0:
			return c, fmt.Errorf("publish: Config.%s %d: want 0 or more", f.name, *f.v)
		case *f.v == 0:
			*f.v = f.preset
		}
	}
	if c.IOTimeout < 0 {
		return c, fmt.Errorf("publish: Config.IOTimeout %v: want 0 or more", c.IOTimeout)
	}
	c.IOTimeout = cmp.Or(c.IOTimeout, DefaultIOTimeout)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}

// Stats are counters since a Publisher was opened, and its peers now.
type Stats struct {
	Batches, Events uint64
	Kept            int    // batches that a replay can give
	Dropped         uint64 // batches that a subscriber did not get because it was too slow, over all subscribers
	Replays         uint64 // that were asked for
	Subscribers     int    // connections
}

// Publisher publishes batches and gives them again. Its methods are safe for concurrent use.
type Publisher struct {
	config           Config
	endpoint, replay string
	history          *history
	cancel           context.CancelFunc
	owners           sync.WaitGroup

	publishing  sync.Mutex // batches are numbered in the order of their times
	dropped     atomic.Uint64
	replays     atomic.Uint64
	subscribers atomic.Int64
}

// Listen opens the sockets and serves them until Close. ctx bounds the opening only.
func Listen(ctx context.Context, config Config) (*Publisher, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Publisher{config: config, history: newHistory(config.Buffer, config.BufferBytes)}
	pub, at, err := listen(ctx, config.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("publish: Config.Endpoint %q: %w", config.Endpoint, err)
	}
	p.endpoint = at
	serving, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	if config.Replay != "" {
		var router net.Listener
		if router, p.replay, err = listen(ctx, config.Replay); err != nil {
			cancel()
			return nil, errors.Join(fmt.Errorf("publish: Config.Replay %q: %w", config.Replay, err), pub.Close())
		}
		p.owners.Go(func() { p.accept(serving, router, zmq4.Router, p.serveReplay) })
	}
	p.owners.Go(func() { p.accept(serving, pub, zmq4.Pub, p.serveSubscriber) })
	return p, nil
}

// listen listens at an endpoint, and returns it with the port that was taken if it has port 0.
func listen(ctx context.Context, endpoint string) (net.Listener, string, error) {
	at, err := zmtp.Parse(endpoint, true)
	if err != nil {
		return nil, "", err
	}
	l, err := zmtp.Listen(ctx, at)
	if err != nil || at.Network != "tcp" {
		return l, endpoint, err
	}
	host, _, _ := net.SplitHostPort(strings.TrimPrefix(endpoint, "tcp://")) // Parse has split it
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", endpoint, err)
	}
	return l, "tcp://" + net.JoinHostPort(host, port), nil
}

// Close ends all connections. What was published and not yet sent is lost.
func (p *Publisher) Close() error {
	p.history.close()
	p.cancel()
	p.owners.Wait()
	return nil
}

// Config returns the settings, with defaults filled in, and as endpoints those where the Publisher listens.
func (p *Publisher) Config() Config {
	c := p.config
	c.Endpoint, c.Replay = p.endpoint, p.replay
	return c
}

// Publish publishes events as one batch. It does not wait for anybody, and keeps nothing of events. It is an error, and nothing is
// published, if a hash is not a number. No events are no batch.
func (p *Publisher) Publish(events []kvevents.Event) error {
	if len(events) == 0 {
		return nil
	}
	p.publishing.Lock()
	defer p.publishing.Unlock()
	now := float64(p.config.Now().UnixNano()) / 1e9
	payload, err := Append(nil, p.config.Encoding, &kvevents.Batch{Time: now, Rank: p.config.Rank, Events: events})
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	p.history.add(payload, len(events))
	return nil
}

// Stats returns the counters.
func (p *Publisher) Stats() Stats {
	p.history.mu.Lock()
	defer p.history.mu.Unlock()
	return Stats{
		Batches: p.history.next, Events: p.history.events, Kept: len(p.history.payloads),
		Dropped: p.dropped.Load(), Replays: p.replays.Load(), Subscribers: int(p.subscribers.Load()),
	}
}

// accept serves connections until ctx ends. What ends one of them is no error of ours.
func (p *Publisher) accept(ctx context.Context, l net.Listener, own zmq4.SocketType, serve func(*zmtp.Link)) {
	zmtp.Serve(ctx, l, maxPeers, &p.owners, func(conn net.Conn) {
		x, err := zmtp.Open(ctx, conn, own, true, handshake, maxRequest)
		if err != nil {
			return
		}
		x.Buffer(p.config.IOTimeout)
		serve(x)
	})
}

// serveSubscriber sends a subscriber what is published.
func (p *Publisher) serveSubscriber(x *zmtp.Link) {
	p.subscribers.Add(1)
	defer p.subscribers.Add(-1)
	r := &reader{history: p.history}
	var feeding sync.WaitGroup
	defer feeding.Wait()
	defer x.Close() // feed may be writing
	defer r.leave()
	feeding.Go(func() { p.feed(r, x) })
	for {
		frames, err := x.Receive()
		if err != nil {
			return
		}
		if len(frames) != 1 || len(frames[0]) == 0 || !strings.HasPrefix(p.config.Topic, string(frames[0][1:])) {
			continue
		}
		switch frames[0][0] {
		case 0:
			r.subscribe(-1)
		case 1:
			r.subscribe(1)
		}
	}
}

// feed sends batches until the reader has gone, or does not take them any more: then it ends the connection.
func (p *Publisher) feed(r *reader, x *zmtp.Link) {
	topic := []byte(p.config.Topic)
	for {
		first, payloads, dropped, ok := r.wait()
		if !ok {
			return
		}
		p.dropped.Add(dropped)
		for i, payload := range payloads {
			_ = x.Send(topic, number(first+uint64(i)), payload)
		}
		if x.Flush() != nil {
			_ = x.Close()
			return
		}
	}
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// serveReplay answers questions for past batches, one after the other.
func (p *Publisher) serveReplay(x *zmtp.Link) {
	for {
		frames, err := x.Receive()
		if err != nil {
			return
		}
		if len(frames) != 2 || len(frames[0]) != 0 || len(frames[1]) != 8 {
			continue
		}
		p.replays.Add(1)
		if p.again(x, binary.BigEndian.Uint64(frames[1])) != nil {
			return
		}
	}
}

// endMarker is the number in the last message of a replay.
var endMarker = bytes.Repeat([]byte{0xff}, 8)

// again sends the batches from a number on that there are now.
func (p *Publisher) again(x *zmtp.Link, from uint64) error {
	topic, end := []byte(p.config.Topic), p.history.end()
	for from < end {
		first, payloads := p.history.from(from)
		for i, payload := range payloads {
			if n := first + uint64(i); n < end {
				_ = x.Send(nil, topic, number(n), payload)
			}
		}
		from = first + uint64(len(payloads))
	}
	_ = x.Send(nil, nil, endMarker, nil)
	return x.Flush()
}
