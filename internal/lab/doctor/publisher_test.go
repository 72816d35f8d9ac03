package doctor_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log"
	"sync"
	"testing"

	"github.com/go-zeromq/zmq4"
	"github.com/tinylib/msgp/msgp"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

// publisher is a stand-in for an engine's event publisher, over real ZeroMQ sockets.
type publisher struct {
	t       *testing.T
	pub     zmq4.Socket
	mu      sync.Mutex
	batches [][]byte
	hashes  uint64
	garbage bool
	foreign bool
	mute    bool // nothing is sent, though it is kept for replay
}

func freeTCP(t *testing.T) string {
	t.Helper()
	return "tcp://" + testkit.FreeAddress(t)
}

// publish starts a publisher. With connects it dials events instead of listening there; without replay it has no past.
func publish(t *testing.T, events, replay string, connects bool) *publisher {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	quiet := zmq4.WithLogger(log.New(io.Discard, "", 0))
	p := &publisher{t: t, pub: zmq4.NewPub(ctx, quiet)}
	if !connects {
		if err := p.pub.Listen(events); err != nil {
			t.Fatal(err)
		}
	}
	var router zmq4.Socket
	var answering sync.WaitGroup
	if replay != "" {
		router = zmq4.NewRouter(ctx, quiet)
		if err := router.Listen(replay); err != nil {
			t.Fatal(err)
		}
		answering.Go(func() { p.answer(router) })
	}
	t.Cleanup(func() {
		cancel()
		_ = p.pub.Close()
		if router != nil {
			_ = router.Close()
		}
		answering.Wait()
	})
	return p
}

func (p *publisher) answer(router zmq4.Socket) {
	for {
		msg, err := router.Recv()
		if err != nil {
			return
		}
		if len(msg.Frames) != 3 {
			continue
		}
		from := binary.BigEndian.Uint64(msg.Frames[2])
		p.mu.Lock()
		batches := p.batches
		p.mu.Unlock()
		for i := int(from); i < len(batches); i++ {
			_ = router.Send(zmq4.NewMsgFrom(msg.Frames[0], nil, nil, binary.BigEndian.AppendUint64(nil, uint64(i)), batches[i]))
		}
		_ = router.Send(zmq4.NewMsgFrom(msg.Frames[0], nil, nil, bytes.Repeat([]byte{0xff}, 8), nil))
	}
}

// stored publishes that the blocks of a prompt were stored.
func (p *publisher) stored(tokens []uint32, block int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(tokens) / block
	b := msgp.AppendArrayHeader(nil, 3)
	b = msgp.AppendFloat64(b, 1000)
	b = msgp.AppendArrayHeader(b, 1)
	b = msgp.AppendMapHeader(b, 5)
	b = msgp.AppendString(msgp.AppendString(b, "type"), "BlockStored")
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "block_hashes"), uint32(n))
	for range n {
		p.hashes++
		b = msgp.AppendUint64(b, p.hashes)
	}
	b = msgp.AppendNil(msgp.AppendString(b, "parent_block_hash"))
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "token_ids"), uint32(n*block))
	for _, token := range tokens[:n*block] {
		if p.foreign {
			token++
		}
		b = msgp.AppendInt(b, int(token))
	}
	b = msgp.AppendInt(msgp.AppendString(b, "block_size"), block)
	b = msgp.AppendInt(b, 0)
	if p.garbage {
		b = []byte{0xc1}
	}
	seq := uint64(len(p.batches))
	p.batches = append(p.batches, b)
	if !p.mute {
		_ = p.pub.Send(zmq4.NewMsgFrom([]byte("kv@fake"), binary.BigEndian.AppendUint64(nil, seq), b))
	}
}
