package kvevents

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/ragpilot/ragpilot/engines/kvevents/internal/zmtp"
)

// Replay asks the replay socket of an engine for the batches that it still has from number from on, and gives them to each, oldest
// first, until that returns false; payloads are its own, and a [Decoder] reads them. finished reports that the engine has ended its
// answer. It may have left some out without saying so. timeout bounds dialling, the handshake, and the wait for each batch, and
// twelve times as much the whole answer; 0: [DefaultTimeout]. Batches are bounded by [DefaultMaxMessage].
//
// A [Subscriber] asks by itself, once it is connected. This is for programs that want to know whether an engine publishes at
// all: it listens on its replay endpoint in any case. Errors about the endpoint wrap [ErrEndpoint].
func Replay(ctx context.Context, endpoint string, from uint64, timeout time.Duration,
	each func(seq uint64, payload []byte) bool,
) (finished bool, err error) {
	to, err := zmtp.Parse(endpoint, false)
	if err != nil {
		return false, err
	}
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	d := &dealer{to: to, timeout: timeout, limit: DefaultMaxMessage}
	return d.ask(ctx, from, each)
}

// replayer asks an engine for past batches.
type replayer interface {
	// ask gives the buffered batches from seq number from on to each, oldest first, until it returns false.
	// finished reports that the engine has ended its answer; nothing reports whether it left some out.
	ask(ctx context.Context, from uint64, each func(seq uint64, payload []byte) bool) (finished bool, err error)
}

// dealer asks the replay socket of an engine, over a new connection each time.
type dealer struct {
	to      zmtp.Address
	timeout time.Duration
	limit   int

	topic string      // what the engine publishes under, as far as the answer says it; empty: any
	alone func() bool // no other engine may have the endpoint; nil: none has
}

// Bounds of one answer. Engines keep 10,000 batches unless configured otherwise.
const (
	maxReplayed  = 1 << 20
	replayBudget = 12 // timeouts that the whole answer may take
)

var (
	endOfReplay  = bytes.Repeat([]byte{0xff}, 8)
	errNoReplay  = errors.New("no answer to replay")
	errOffReplay = errors.New("answer to replay of another shape")
	errNotOurs   = errors.New("answer to replay that may be another engine's")
)

func (d *dealer) ask(ctx context.Context, from uint64, each func(uint64, []byte) bool) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, replayBudget*d.timeout)
	defer cancel()
	l, err := zmtp.Dial(ctx, zmq4.Dealer, d.to, d.timeout, d.limit)
	if err != nil {
		return false, fmt.Errorf("%w: %w", errNoReplay, err)
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	ours, first := d.alone == nil || d.alone(), from
	if !ours && from > 0 {
		first-- // its topic shows whose answer this is, even if nothing is new
	}
	if err := l.Send(nil, binary.BigEndian.AppendUint64(nil, first)); err != nil {
		return false, fmt.Errorf("%w: %w", errNoReplay, err)
	}
	for range maxReplayed {
		l.ReadBefore(time.Now().Add(d.timeout))
		frames, err := l.Receive()
		if err != nil {
			return false, fmt.Errorf("%w: %w", errNoReplay, err)
		}
		// Delimiter, topic in newer releases, seq, payload.
		n := len(frames)
		if n < 2 || len(frames[n-2]) != 8 {
			return false, fmt.Errorf("%w: %d frames", errOffReplay, n)
		}
		end := bytes.Equal(frames[n-2], endOfReplay)
		if !end && n > 3 && len(frames[n-3]) > 0 && d.topic != "" {
			if topic := string(frames[n-3]); topic != d.topic {
				return false, fmt.Errorf("%w: it is about %.100q", errNotOurs, topic)
			}
			ours = true
		}
		seq := binary.BigEndian.Uint64(frames[n-2])
		switch {
		case !ours:
			return false, fmt.Errorf("%w: several publish to one endpoint, and it names no topic", errNotOurs)
		case end:
			return true, nil
		case first < from && seq == first: // asked for its topic
		case !each(seq, frames[n-1]):
			return false, nil
		}
	}
	return false, fmt.Errorf("%w: more than %d batches", errOffReplay, maxReplayed)
}
