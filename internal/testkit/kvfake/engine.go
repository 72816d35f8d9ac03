package kvfake

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/publish"
)

// Engine publishes over a PUB socket, numbers its messages from 0 on, buffers them, and answers replay requests over
// a ROUTER socket.
type Engine struct {
	// Topic stands before each message.
	Topic string
	// OldReplay leaves the topic out of replayed messages, as releases before vLLM 0.26 do.
	OldReplay bool
	// Skip, if not nil, reports whether an answer leaves a batch out. It is called with the number of the request, from
	// 1 on.
	Skip func(request int, seq uint64) bool
	// Mute, if not nil, reports whether a request gets no answer at all.
	Mute func(request int) bool

	mu       sync.Mutex
	pub      zmq4.Socket
	router   zmq4.Socket
	batches  []batch
	next     uint64
	asked    int
	answered sync.WaitGroup
	cancel   context.CancelFunc
}

type batch struct {
	seq     uint64
	payload []byte
}

func quiet() zmq4.Option { return zmq4.WithLogger(log.New(io.Discard, "", 0)) }

// Start binds the sockets; replay may be "".
func (e *Engine) Start(endpoint, replay string) error {
	return e.start(replay, func(pub zmq4.Socket) error { return pub.Listen(endpoint) })
}

// Connect dials a subscriber that listens, and binds the replay socket.
func (e *Engine) Connect(endpoint, replay string) error {
	return e.start(replay, func(pub zmq4.Socket) error { return pub.Dial(endpoint) })
}

func (e *Engine) start(replay string, open func(zmq4.Socket) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	e.pub = zmq4.NewPub(ctx, quiet(), zmq4.WithDialerRetry(20*time.Millisecond))
	if err := open(e.pub); err != nil {
		return err
	}
	if replay == "" {
		return nil
	}
	e.router = zmq4.NewRouter(ctx, quiet())
	if err := e.router.Listen(replay); err != nil {
		return err
	}
	e.answered.Go(e.answer)
	return nil
}

// Stop closes everything. What was buffered is gone, as with a process that ends.
func (e *Engine) Stop() {
	e.cancel()
	_ = e.pub.Close()
	if e.router != nil {
		_ = e.router.Close()
	}
	e.answered.Wait()
}

// Subscribers reports whether anybody has subscribed.
func (e *Engine) Subscribers() bool { return len(e.pub.(zmq4.Topics).Topics()) > 0 }

// Publish buffers and sends a payload, and returns its number.
func (e *Engine) Publish(payload []byte) uint64 {
	seq := e.Buffer(payload)
	e.Send(seq, payload)
	return seq
}

// Buffer gives a payload its number without sending it: a message that is lost.
func (e *Engine) Buffer(payload []byte) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	seq := e.next
	e.next++
	e.batches = append(e.batches, batch{seq, payload})
	return seq
}

// Send sends any message.
func (e *Engine) Send(seq uint64, payload []byte) {
	_ = e.pub.Send(zmq4.NewMsgFrom([]byte(e.Topic), binary.BigEndian.AppendUint64(nil, seq), payload))
}

// Frames sends frames as they are.
func (e *Engine) Frames(frames ...[]byte) { _ = e.pub.Send(zmq4.NewMsgFrom(frames...)) }

// Forget drops all buffered batches before number seq.
func (e *Engine) Forget(seq uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.batches) > 0 && e.batches[0].seq < seq {
		e.batches = e.batches[1:]
	}
}

// Asked returns how many replays were asked for.
func (e *Engine) Asked() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked
}

func (e *Engine) answer() {
	for {
		msg, err := e.router.Recv()
		if err != nil {
			return
		}
		if len(msg.Frames) == 3 && len(msg.Frames[1]) == 0 && len(msg.Frames[2]) == 8 {
			e.replay(msg.Frames[0], binary.BigEndian.Uint64(msg.Frames[2]))
		}
	}
}

func (e *Engine) replay(client []byte, from uint64) {
	e.mu.Lock()
	e.asked++
	request, batches := e.asked, e.batches
	e.mu.Unlock()
	if e.Mute != nil && e.Mute(request) {
		return
	}
	for _, b := range batches {
		if b.seq < from || e.Skip != nil && e.Skip(request, b.seq) {
			continue
		}
		e.reply(client, e.Topic, binary.BigEndian.AppendUint64(nil, b.seq), b.payload)
	}
	e.reply(client, "", bytes.Repeat([]byte{0xff}, 8), nil)
}

func (e *Engine) reply(client []byte, topic string, seq, payload []byte) {
	frames := [][]byte{client, nil, []byte(topic), seq, payload}
	if e.OldReplay {
		frames = [][]byte{client, nil, seq, payload}
	}
	_ = e.router.Send(zmq4.NewMsgFrom(frames...))
}

// Reset makes a stopped engine ready for Start as the same process: it keeps its numbers and its buffer.
func (e *Engine) Reset() { e.pub, e.router = nil, nil }

// Form is an encoding of events.
type Form = publish.Encoding

// The two encodings that engines use.
const (
	Map   = publish.Map
	Array = publish.Array
)

// Payload encodes a batch as engines do. Hashes must have been made of numbers.
func Payload(form Form, time float64, rank int, events ...kvevents.Event) []byte {
	b, err := publish.Append(nil, form, &kvevents.Batch{Time: time, Rank: rank, Events: events})
	if err != nil {
		panic("kvfake: " + err.Error())
	}
	return b
}
