package publish_test

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/publish"
)

// A subscriber that does not read holds up no other, and sees by the numbers alone what it has missed.
func TestSlowSubscriber(t *testing.T) {
	p := listen(t, func(c *publish.Config) { c.Buffer = 100 })
	slow := peer(t, p.Config().Endpoint, zmq4.Sub)
	if err := slow.SendMsg(zmq4.NewMsg([]byte{1})); err != nil {
		t.Fatal(err)
	}
	large := kvevents.Event{Kind: kvevents.Stored, Hashes: []kvevents.Hash{kvevents.Uint(1)}, Tokens: make([]int, 1<<14), BlockSize: 1 << 14}
	first := receiveOne(t, p, slow, large)
	for range 1500 { // 24 MB: more than systems buffer
		if err := p.Publish([]kvevents.Event{large}); err != nil {
			t.Fatal(err)
		}
	}
	last, jumps := first, 0
	for last+1 < p.Stats().Batches {
		n := binary.BigEndian.Uint64(receive(t, slow)[1])
		if n <= last {
			t.Fatalf("batch %d after %d", n, last)
		}
		if n > last+1 {
			jumps++
		}
		last = n
	}
	if dropped := p.Stats().Dropped; jumps == 0 || dropped == 0 {
		t.Errorf("%d holes in the numbers, %d batches dropped", jumps, dropped)
	}
}

// A subscriber that does not read and goes, or breaks the protocol, gives its place back, though much waits to be sent to it; and so does
// one, of either socket, that takes nothing for too long.
func TestStuckPeers(t *testing.T) {
	large := kvevents.Event{Kind: kvevents.Stored, Hashes: []kvevents.Hash{kvevents.Uint(1)}, Tokens: make([]int, 1<<14), BlockSize: 1 << 14}
	fill := func(t *testing.T, p *publish.Publisher, batches int) {
		t.Helper()
		for range batches {
			if err := p.Publish([]kvevents.Event{large}); err != nil {
				t.Fatal(err)
			}
		}
	}
	impatient := func(c *publish.Config) { c.IOTimeout = 50 * time.Millisecond }
	cut := func(c *net.TCPConn) bool { // what is closed cannot be written to; an empty message says nothing
		_, err := c.Write([]byte{0, 0})
		return err != nil
	}
	for name, leave := range map[string]func(c *net.TCPConn) error{
		"it closes its side": func(c *net.TCPConn) error { return c.CloseWrite() },
		"it breaks the protocol": func(c *net.TCPConn) error {
			_, err := c.Write([]byte{0x80, 0})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := listen(t, nil)
			conn := stuck(t, p.Config().Endpoint, zmq4.Sub, []byte{1})
			await(t, "a subscriber", func() bool { return p.Stats().Subscribers == 1 })
			await(t, "more than systems buffer", func() bool { fill(t, p, 50); return p.Stats().Batches > 2000 }) // 32 MB
			if err := leave(conn); err != nil {
				t.Fatal(err)
			}
			await(t, "its place", func() bool { return p.Stats().Subscribers == 0 })
		})
	}
	t.Run("it takes nothing", func(t *testing.T) {
		p := listen(t, impatient)
		conn := stuck(t, p.Config().Endpoint, zmq4.Sub, []byte{1})
		await(t, "its end", func() bool { fill(t, p, 10); return cut(conn) })
		await(t, "its place", func() bool { return p.Stats().Subscribers == 0 })
	})
	t.Run("it takes no replay", func(t *testing.T) {
		p := listen(t, impatient)
		fill(t, p, 1000)
		conn := stuck(t, p.Config().Replay, zmq4.Dealer, nil, make([]byte, 8))
		await(t, "its end", func() bool { return cut(conn) })
	})
}

// stuck is a peer that sends one message and reads nothing more.
func stuck(t testing.TB, endpoint string, kind zmq4.SocketType, frames ...[]byte) *net.TCPConn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(endpoint, "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(1024)
	c, err := zmq4.Open(conn, null.Security(), kind, nil, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SendMsg(zmq4.NewMsgFrom(frames...)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// receiveOne publishes until a subscriber has got its first message, and returns that one's number.
func receiveOne(t testing.TB, p *publish.Publisher, c *zmq4.Conn, e kvevents.Event) uint64 {
	t.Helper()
	got := make(chan uint64)
	go func() { got <- binary.BigEndian.Uint64(receive(t, c)[1]) }()
	for {
		if err := p.Publish([]kvevents.Event{e}); err != nil {
			t.Fatal(err)
		}
		select {
		case n := <-got:
			return n
		case <-time.After(time.Millisecond):
		}
	}
}
