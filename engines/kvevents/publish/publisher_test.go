package publish_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/engines/kvevents/publish"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func listen(t testing.TB, change func(*publish.Config)) *publish.Publisher {
	t.Helper()
	config := publish.Config{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0", Topic: "kv@a@m"}
	if change != nil {
		change(&config)
	}
	p, err := publish.Listen(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// removed is a batch whose number a subscriber can read.
func removed(n int) []kvevents.Event {
	return []kvevents.Event{{Kind: kvevents.Removed, Hashes: []kvevents.Hash{kvevents.Uint(uint64(n))}}}
}

func send(t testing.TB, p *publish.Publisher, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := p.Publish(removed(n)); err != nil {
			t.Fatal(err)
		}
	}
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// peer is a connection of the library's, which speaks the protocol by itself.
func peer(t testing.TB, endpoint string, kind zmq4.SocketType) *zmq4.Conn {
	t.Helper()
	network, address := "tcp", strings.TrimPrefix(endpoint, "tcp://")
	if path, ok := strings.CutPrefix(endpoint, "ipc://"); ok {
		network, address = "unix", path
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	c, err := zmq4.Open(conn, null.Security(), kind, nil, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func receive(t testing.TB, c *zmq4.Conn) [][]byte {
	t.Helper()
	m, err := c.RecvMsg()
	if err != nil {
		t.Fatal(err)
	}
	return m.Frames
}

// replay asks for past batches and returns their numbers.
func replay(t testing.TB, c *zmq4.Conn, from uint64) (numbers []uint64) {
	t.Helper()
	if err := c.SendMsg(zmq4.NewMsgFrom(nil, binary.BigEndian.AppendUint64(nil, from))); err != nil {
		t.Fatal(err)
	}
	for {
		f := receive(t, c)
		if len(f) != 4 || len(f[0]) != 0 || len(f[2]) != 8 {
			t.Fatalf("frames %q", f)
		}
		if bytes.Equal(f[2], bytes.Repeat([]byte{0xff}, 8)) {
			if len(f[1])+len(f[3]) != 0 {
				t.Fatalf("end marker %q", f)
			}
			return numbers
		}
		n := binary.BigEndian.Uint64(f[2])
		if b, err := new(kvevents.Decoder).Decode(f[3]); err != nil || b.Events[0].Hashes[0] != kvevents.Uint(n) || string(f[1]) != "kv@a@m" {
			t.Fatalf("batch %d: topic %q, %+v, %v", n, f[1], b, err)
		}
		numbers = append(numbers, n)
	}
}

// The frames on the wire, as engines' clients read them.
func TestFrames(t *testing.T) {
	for _, scheme := range []string{"tcp", "ipc"} {
		t.Run(scheme, func(t *testing.T) {
			dir := t.TempDir()
			p := listen(t, func(c *publish.Config) {
				if scheme == "ipc" {
					c.Endpoint, c.Replay = "ipc://"+filepath.Join(dir, "e"), "ipc://"+filepath.Join(dir, "r")
				}
			})
			send(t, p, 0, 3) // before anybody listens
			sub := peer(t, p.Config().Endpoint, zmq4.Sub)
			if err := sub.SendMsg(zmq4.NewMsg([]byte("\x01kv@"))); err != nil {
				t.Fatal(err)
			}
			var f [][]byte
			for n := 3; f == nil; n++ { // a subscription takes a moment to come
				send(t, p, n, n+1)
				time.Sleep(time.Millisecond)
				if n > 1000 || p.Stats().Subscribers == 1 && n > 20 {
					f = receive(t, sub)
				}
			}
			n := binary.BigEndian.Uint64(f[1])
			if len(f) != 3 || string(f[0]) != "kv@a@m" || n < 3 {
				t.Fatalf("frames %q", f)
			}
			b, err := new(kvevents.Decoder).Decode(f[2])
			if err != nil || b.Rank != 0 || b.Events[0].Hashes[0] != kvevents.Uint(n) {
				t.Errorf("batch %d: %+v, %v", n, b, err)
			}
			dealer := peer(t, p.Config().Replay, zmq4.Dealer)
			all := replay(t, dealer, 0)
			if uint64(len(all)) != p.Stats().Batches || all[0] != 0 || !slices.IsSorted(all) {
				t.Errorf("%d of %d batches replayed", len(all), p.Stats().Batches)
			}
			if tail := replay(t, dealer, uint64(len(all)-1)); len(tail) != 1 { // the same connection again
				t.Errorf("from the last one on: %v", tail)
			}
			if none := replay(t, dealer, 1<<40); len(none) != 0 {
				t.Errorf("from the future: %v", none)
			}
		})
	}
}

// Topics that are not asked for are not sent.
func TestTopics(t *testing.T) {
	p := listen(t, nil)
	other, own := peer(t, p.Config().Endpoint, zmq4.Sub), peer(t, p.Config().Endpoint, zmq4.Sub)
	for c, topic := range map[*zmq4.Conn]string{other: "\x01kv@b", own: "\x01"} {
		if err := c.SendMsg(zmq4.NewMsg([]byte(topic))); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan error, 1)
	go func() {
		m, err := other.RecvMsg()
		if err == nil {
			err = fmt.Errorf("a message: %q", m.Frames)
		}
		got <- err
	}()
	var first [][]byte
	done := make(chan struct{})
	go func() { first = receive(t, own); close(done) }()
	for n := 0; ; n++ {
		send(t, p, n, n+1)
		select {
		case <-done:
		case <-time.After(time.Millisecond):
			continue
		}
		break
	}
	if string(first[0]) != "kv@a@m" {
		t.Errorf("frames %q", first)
	}
	_ = p.Close()
	if err := <-got; !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// tape keeps the numbers of removed blocks since the last clearing.
type tape struct {
	mu       sync.Mutex
	numbers  []string
	complete bool
}

func (s *tape) Apply(b *kvevents.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range b.Events {
		s.numbers = append(s.numbers, e.Hashes[0].String())
	}
}

func (s *tape) Clear(kvevents.Cause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers = nil
}

func (s *tape) Complete(ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete = ok
}

// has reports whether it holds exactly the first n.
func (s *tape) has(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, x := range s.numbers {
		if x != fmt.Sprint(i) {
			return false
		}
	}
	return len(s.numbers) == n && s.complete
}

func follow(t testing.TB, p *publish.Publisher) (*tape, *kvevents.Subscriber) {
	t.Helper()
	s := &tape{}
	sub := testkit.Must(kvevents.New(kvevents.Config{
		Sources: []kvevents.Source{{Name: "r", Endpoint: p.Config().Endpoint, Replay: p.Config().Replay}},
		Sink:    func(kvevents.Publisher) kvevents.Sink { return s },
		Probe:   50 * time.Millisecond, Timeout: 5 * time.Second, Backoff: 5 * time.Millisecond, MaxBackoff: 20 * time.Millisecond,
	}))(t)
	testkit.Run(t, sub.Run)
	return s, sub
}

// A subscriber gets all batches, once and in order: those from before it came, a burst from several goroutines, and those of a
// publisher that has taken the place of the first and numbers from the beginning.
func TestSubscriber(t *testing.T) {
	at := publish.Config{Endpoint: "tcp://" + testkit.FreeAddress(t), Replay: "tcp://" + testkit.FreeAddress(t)}
	same := func(c *publish.Config) { c.Endpoint, c.Replay = at.Endpoint, at.Replay }
	p := listen(t, same)
	send(t, p, 0, 500)
	s, sub := follow(t, p)
	await(t, "the history", func() bool { return s.has(500) })
	send(t, p, 500, 9000)
	await(t, "a burst", func() bool { return s.has(9000) })
	_ = p.Close()
	again := listen(t, same)
	send(t, again, 0, 3)
	await(t, "the new publisher's batches", func() bool { return s.has(3) })
	if st := sub.Status()[0]; st.Holes > 0 {
		t.Errorf("%+v", st)
	}
	if st := again.Stats(); st.Dropped > 0 || st.Replays == 0 || st.Kept != 3 {
		t.Errorf("%+v", st)
	}
}

// Close has left the ports when it returns, though peers go on to connect: another publisher can take its place at once.
func TestCloseLeavesThePorts(t *testing.T) {
	at := testkit.FreeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	var dialing sync.WaitGroup
	for range 4 {
		dialing.Go(func() {
			for ctx.Err() == nil {
				if c, err := new(net.Dialer).DialContext(ctx, "tcp", at); err == nil {
					_ = c.Close()
				}
			}
		})
	}
	for range 300 {
		p, err := publish.Listen(t.Context(), publish.Config{Endpoint: "tcp://" + at})
		if err != nil {
			t.Error(err)
			break
		}
		_ = p.Close()
	}
	stop()
	dialing.Wait()
}

// What is kept is bounded in number and in bytes.
func TestKept(t *testing.T) {
	p := listen(t, func(c *publish.Config) { c.Buffer = 10 })
	send(t, p, 0, 25)
	dealer := peer(t, p.Config().Replay, zmq4.Dealer)
	if got := replay(t, dealer, 0); len(got) != 10 || got[0] != 15 {
		t.Errorf("replayed %v", got)
	}
	small := listen(t, func(c *publish.Config) { c.BufferBytes = 1 })
	send(t, small, 0, 3)
	if st := small.Stats(); st.Kept != 1 || st.Batches != 3 {
		t.Errorf("%+v", st)
	}
}

// Peers that speak otherwise, or lie about lengths, are let go. The others are served.
func TestStrangers(t *testing.T) {
	p := listen(t, nil)
	greeting := make([]byte, 64)
	greeting[0], greeting[9], greeting[10] = 0xff, 0x7f, 3
	copy(greeting[12:], "NULL")
	ready := []byte("\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB")
	ready[1] = byte(len(ready) - 2)
	huge := []byte{2, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	for name, sent := range map[string][]byte{
		"nothing known":      []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n" + strings.Repeat("x", 64)),
		"another mechanism":  append(bytes.Replace(greeting, []byte("NULL"), []byte("CURV"), 1), ready...),
		"another socket":     append(bytes.Clone(greeting), bytes.Replace(ready, []byte("SUB"), []byte("REP"), 1)...),
		"a huge READY":       append(bytes.Clone(greeting), 6, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		"a huge topic":       append(append(bytes.Clone(greeting), ready...), huge...),
		"no end of frames":   append(append(bytes.Clone(greeting), ready...), bytes.Repeat([]byte{1, 0}, 100)...),
		"unknown flags":      append(append(bytes.Clone(greeting), ready...), 0x80, 0),
		"a lying property":   append(bytes.Clone(greeting), "\x04\x0c\x05READY\x01a\xff\xff\xff\xff"...),
		"a cut-off property": append(bytes.Clone(greeting), "\x04\x08\x05READY\x09a"...),
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(p.Config().Endpoint, "tcp://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			_, _ = conn.Write(sent)
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("it was kept")
			}
		})
	}
	dealer := peer(t, p.Config().Replay, zmq4.Dealer)
	for _, frames := range [][][]byte{{nil}, {[]byte("x"), make([]byte, 8)}, {nil, make([]byte, 7)}} {
		if err := dealer.SendMsg(zmq4.NewMsgFrom(frames...)); err != nil {
			t.Fatal(err)
		}
	}
	send(t, p, 0, 2)
	if got := replay(t, dealer, 1); len(got) != 1 {
		t.Errorf("replayed %v", got)
	}
}

// The library's sockets, with their goroutines and queues, as a program in Go would use them.
func TestLibrarySockets(t *testing.T) {
	p := listen(t, nil)
	sub := zmq4.NewSub(t.Context(), zmq4.WithLogger(log.New(io.Discard, "", 0)))
	defer sub.Close()
	if err := sub.Dial(p.Config().Endpoint); err != nil {
		t.Fatal(err)
	}
	if err := sub.SetOption(zmq4.OptionSubscribe, "kv@"); err != nil {
		t.Fatal(err)
	}
	got := make(chan zmq4.Msg, 1)
	go func() {
		m, _ := sub.Recv()
		got <- m
	}()
	for n := 0; ; n++ {
		send(t, p, n, n+1)
		select {
		case m := <-got:
			if len(m.Frames) != 3 || string(m.Frames[0]) != "kv@a@m" {
				t.Errorf("frames %q", m.Frames)
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}

func TestListenErrors(t *testing.T) {
	p := listen(t, nil)
	file := filepath.Join(t.TempDir(), "a file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config publish.Config
		want   string
	}{
		"no endpoint":      {publish.Config{}, `Endpoint ""`},
		"other transport":  {publish.Config{Endpoint: "inproc://x"}, "inproc"},
		"taken":            {publish.Config{Endpoint: p.Config().Endpoint}, p.Config().Endpoint},
		"taken replay":     {publish.Config{Endpoint: "tcp://127.0.0.1:0", Replay: p.Config().Replay}, "Config.Replay"},
		"a file":           {publish.Config{Endpoint: "ipc://" + file}, file},
		"a negative bound": {publish.Config{Endpoint: "tcp://127.0.0.1:0", Buffer: -1}, "Buffer -1"},
		"a negative time":  {publish.Config{Endpoint: "tcp://127.0.0.1:0", IOTimeout: -time.Second}, "IOTimeout -1s"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := publish.Listen(t.Context(), c.config)
			if err == nil {
				_ = got.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want something about %s", err, c.want)
			}
		})
	}
}

// A socket file whose process has ended is taken over, one in use is not.
func TestSocketFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "e")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if _, err := publish.Listen(t.Context(), publish.Config{Endpoint: "ipc://" + path}); err == nil {
		t.Error("a socket in use was taken over")
	}
	_ = l.Close() // the file stays
	listen(t, func(c *publish.Config) { c.Endpoint, c.Replay = "ipc://"+path, "" })
}
