package doctor

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// past is what an engine's replay socket gave.
type past struct {
	batches, events int
	bad             int // batches, and events in them, that could not be read
	holes           uint64
	first, last     uint64
}

// mostReplayed bounds the batches of one answer; engines keep 10,000 unless told otherwise.
const mostReplayed = 1 << 17

// replayed asks a replay socket for what it has from a number on. It is asked even where nothing can be subscribed to,
// because engines listen there in any case; [kvevents.Subscriber] asks only once it is connected.
func replayed(ctx context.Context, endpoint string, from uint64, wait time.Duration) (past, error) {
	var p past
	network, address, err := netAddress(endpoint)
	if err != nil {
		return p, err
	}
	ctx, cancel := context.WithTimeout(ctx, 4*wait)
	defer cancel()
	conn, err := (&net.Dialer{Timeout: wait}).DialContext(ctx, network, address)
	if err != nil {
		return p, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(wait))
	dealer, err := zmq4.Open(conn, null.Security(), zmq4.Dealer, nil, false, nil)
	if err != nil {
		return p, fmt.Errorf("no ZeroMQ there: %w", err)
	}
	if err := dealer.SendMsg(zmq4.NewMsgFrom(nil, binary.BigEndian.AppendUint64(nil, from))); err != nil {
		return p, err
	}
	return p, p.read(dealer, conn, wait)
}

// read takes the batches up to the end marker: delimiter, topic in newer releases, number, payload.
func (p *past) read(dealer *zmq4.Conn, conn net.Conn, wait time.Duration) error {
	end := bytes.Repeat([]byte{0xff}, 8)
	var decoder kvevents.Decoder
	for range mostReplayed {
		_ = conn.SetDeadline(time.Now().Add(wait))
		msg, err := dealer.RecvMsg()
		if err != nil {
			return fmt.Errorf("no answer: %w", err)
		}
		n := len(msg.Frames)
		if n < 2 || len(msg.Frames[n-2]) != 8 {
			return fmt.Errorf("an answer of %d frames, none of them a number", n)
		}
		if bytes.Equal(msg.Frames[n-2], end) {
			return nil
		}
		p.take(&decoder, binary.BigEndian.Uint64(msg.Frames[n-2]), msg.Frames[n-1])
	}
	return fmt.Errorf("more than %d batches", mostReplayed)
}

func (p *past) take(decoder *kvevents.Decoder, seq uint64, payload []byte) {
	if p.batches == 0 {
		p.first = seq
	} else if seq > p.last+1 {
		p.holes += seq - p.last - 1
	}
	p.last = seq
	p.batches++
	batch, err := decoder.Decode(payload)
	if err != nil {
		p.bad++
		return
	}
	p.events += len(batch.Events)
	p.bad += batch.Malformed
}

// next is the number of the batch that comes next.
func (p *past) next() uint64 {
	if p.batches == 0 {
		return 0
	}
	return p.last + 1
}

var errEndpoint = errors.New("want tcp://HOST:PORT or ipc://PATH")

func netAddress(endpoint string) (network, address string, err error) {
	scheme, rest, ok := strings.Cut(endpoint, "://")
	switch {
	case ok && scheme == "ipc" && rest != "":
		return "unix", rest, nil
	case ok && scheme == "tcp" && rest != "":
		return "tcp", rest, nil
	}
	return "", "", fmt.Errorf("endpoint %q: %w", endpoint, errEndpoint)
}
