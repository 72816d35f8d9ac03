package kvevents_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/kvevents"
)

// hostile is a peer that shakes hands as a PUB socket does and then sends what it likes.
func hostile(t *testing.T, l net.Listener, rude []byte) {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	hello := make([]byte, 64)
	copy(hello, []byte{0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0, 'N', 'U', 'L', 'L'})
	_, _ = c.Write(hello)
	_, _ = io.ReadFull(c, hello)
	ready := []byte("\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB")
	_, _ = c.Write(append([]byte{4, byte(len(ready))}, ready...))
	head := make([]byte, 2)
	for range 2 { // its READY, and its subscription
		_, _ = io.ReadFull(c, head)
		_, _ = io.CopyN(io.Discard, c, int64(head[1]))
	}
	_, _ = c.Write(rude)
	_, _ = io.Copy(io.Discard, c) // until the other end closes
}

// TestHostilePeer: frames whose length or number is too large end the connection before they are allocated, and the
// next connection is made.
func TestHostilePeer(t *testing.T) {
	huge := binary.BigEndian.AppendUint64([]byte{2}, 1<<62)
	large := binary.BigEndian.AppendUint64([]byte{2}, 1<<20+1)
	parts := []byte{}
	for range 40 {
		parts = append(parts, binary.BigEndian.AppendUint64([]byte{3}, 100_000)...)
		parts = append(parts, make([]byte, 100_000)...)
	}
	many := make([]byte, 0)
	for range 100 {
		many = append(many, 1, 0)
	}
	command := append(binary.BigEndian.AppendUint64([]byte{6}, 1<<40), 'x')
	for name, rude := range map[string][]byte{
		"huge": huge, "large": large, "many parts": parts, "many frames": many, "command": command,
		"rubbish": []byte("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				hostile(t, l, rude)
				hostile(t, l, rude)
			}()
			t.Cleanup(func() {
				_ = l.Close()
				<-done
			})
			sub := run(t, kvevents.Config{
				Sources: []kvevents.Source{{Endpoint: "tcp://" + l.Addr().String()}},
				Sink:    func(kvevents.Publisher) kvevents.Sink { return &tape{} },
				Timeout: time.Second, MaxMessage: 1 << 20, Backoff: time.Millisecond,
			})
			await(t, "a second connection", func() bool { s := sub.Status(); return len(s) > 0 && s[0].Connects >= 2 })
			if s := sub.Status()[0]; s.Batches > 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}
