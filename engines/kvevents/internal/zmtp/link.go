// Package zmtp makes the ZeroMQ connections of subscribers and publishers of cache events, and reads their addresses.
package zmtp

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"

	"github.com/ragpilot/ragpilot/internal/base/pause"
)

// Link is one ZeroMQ connection. Reading and writing may be done at the same time, each by one goroutine. The library's
// connections are used and not its sockets: a socket takes the length of a frame from the peer and allocates it, does not
// distinguish peers, and leaves goroutines behind when it is closed with messages unread.
type Link struct {
	conn *zmq4.Conn
	net  net.Conn
	mu   sync.Mutex    // guards w: the library answers a PING from the goroutine that reads
	w    *bufio.Writer // nil until Buffer: writes go out at once
	wait time.Duration // for each write to net; 0: as long as the deadline that it has
}

// Dial connects to an address. timeout bounds dialling, and the handshake; limit bounds a message in bytes.
func Dial(ctx context.Context, kind zmq4.SocketType, to Address, timeout time.Duration, limit int) (*Link, error) {
	d := net.Dialer{Timeout: timeout, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second,
		Count: 3,
	}}
	c, err := d.DialContext(ctx, to.Network, to.Addr)
	if err != nil {
		return nil, err
	}
	return Open(ctx, c, kind, false, timeout, limit)
}

// Open does the handshake on a connection, and closes it if that fails.
func Open(ctx context.Context, c net.Conn, kind zmq4.SocketType, server bool, timeout time.Duration, limit int) (*Link, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	_ = c.SetDeadline(time.Now().Add(timeout))
	l := &Link{net: c}
	peer := &guard{Conn: c, link: l, r: bufio.NewReaderSize(c, 64<<10), greeting: greetingBytes, limit: limit}
	var err error
	if l.conn, err = zmq4.Open(peer, null.Security(), kind, nil, server, nil); err != nil {
		_ = c.Close()
		return nil, err
	}
	_ = c.SetDeadline(time.Time{})
	return l, nil
}

// Close closes the connection.
func (l *Link) Close() error { return l.net.Close() }

// ReadBefore sets the deadline of reads.
func (l *Link) ReadBefore(at time.Time) { _ = l.net.SetReadDeadline(at) }

// Buffer makes Send keep messages until there are many, or until Flush. Each write then waits for the peer for at most wait.
func (l *Link) Buffer(wait time.Duration) {
	l.wait, l.w = wait, bufio.NewWriterSize(patient{l}, 64<<10)
}

// Flush sends what Send has kept, and returns the first error of earlier writes as well.
func (l *Link) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Flush()
}

// patient is the connection, with a deadline for each write.
type patient struct{ *Link }

func (l patient) Write(b []byte) (int, error) {
	_ = l.net.SetWriteDeadline(time.Now().Add(l.wait)) // what fails shows in the write
	return l.net.Write(b)
}

// Send sends a message.
func (l *Link) Send(frames ...[]byte) error { return l.conn.SendMsg(zmq4.NewMsgFrom(frames...)) }

// Receive returns the frames of the next message.
func (l *Link) Receive() ([][]byte, error) {
	for {
		msg, err := l.conn.RecvMsg()
		if err != nil {
			return nil, err
		}
		if msg.Type != zmq4.CmdMsg {
			return msg.Frames, nil
		}
	}
}

// Listen listens at an address. A socket file without a listener is taken over.
func Listen(ctx context.Context, at Address) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, at.Network, at.Addr)
	if err == nil || at.Network != "unix" || strings.HasPrefix(at.Addr, "@") {
		return l, err
	}
	c, dialErr := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, at.Network, at.Addr)
	if dialErr == nil {
		_ = c.Close()
		return nil, err
	}
	if info, statErr := os.Stat(at.Addr); statErr != nil || info.Mode()&os.ModeSocket == 0 {
		return nil, err
	}
	if os.Remove(at.Addr) != nil {
		return nil, err
	}
	return lc.Listen(ctx, at.Network, at.Addr)
}

// Serve gives the connections of a listener to handle, at most limit at a time, until ctx ends; others are closed at once. It closes
// each after handle, or when ctx ends. owners has the goroutines of handle. The listener is closed when Serve returns.
func Serve(ctx context.Context, l net.Listener, limit int, owners *sync.WaitGroup, handle func(net.Conn)) {
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = l.Close()
		close(closed)
	})
	defer func() { // ctx may end while a connection is accepted: then the loop ends before, or without, that function
		if stop() {
			_ = l.Close()
		} else {
			<-closed
		}
	}()
	places := make(chan struct{}, limit)
	for ctx.Err() == nil {
		c, err := l.Accept()
		if err != nil {
			pause.For(ctx, 50*time.Millisecond) // out of file descriptors, say
			continue
		}
		select {
		case places <- struct{}{}:
			owners.Go(func() {
				defer func() { <-places }()
				defer c.Close()
				defer context.AfterFunc(ctx, func() { _ = c.Close() })()
				handle(c)
			})
		default:
			_ = c.Close()
		}
	}
}

const (
	greetingBytes = 64 // of ZMTP 3
	maxFrames     = 16 // of one message; those that we want have 4 at most
)

var (
	errTooLong = errors.New("message too long")
	errFlags   = errors.New("frame with unknown flags")
)

// guard reads ahead, and follows the framing of ZMTP 3 to end a connection before a message that is too long is read,
// or allocated.
type guard struct {
	net.Conn
	link     *Link
	r        *bufio.Reader
	greeting int // bytes of the greeting that are still to come
	head     [9]byte
	have     int // bytes of head
	body     int // bytes of the frame that are still to come
	bytes    int // of the message so far
	frames   int
	limit    int
}

// Write implements [net.Conn].
func (g *guard) Write(p []byte) (int, error) {
	g.link.mu.Lock()
	defer g.link.mu.Unlock()
	if g.link.w != nil {
		return g.link.w.Write(p)
	}
	return g.Conn.Write(p)
}

// Read implements [net.Conn].
func (g *guard) Read(p []byte) (int, error) {
	n, err := g.r.Read(p)
	if e := g.watch(p[:n]); e != nil {
		return 0, e
	}
	return n, err
}

func (g *guard) watch(b []byte) error {
	for len(b) > 0 {
		switch {
		case g.greeting > 0:
			n := min(g.greeting, len(b))
			g.greeting -= n
			b = b[n:]
		case g.body > 0:
			n := min(g.body, len(b))
			g.body -= n
			b = b[n:]
		default:
			g.head[g.have] = b[0]
			g.have++
			b = b[1:]
			if err := g.frame(); err != nil {
				return err
			}
		}
	}
	return nil
}

// frame looks at what is there of a frame's header: flags (1: more frames follow, 2: a long frame, 4: a command) and its
// length.
func (g *guard) frame() error {
	if g.head[0] > 7 {
		return fmt.Errorf("%w: %#x", errFlags, g.head[0])
	}
	long := g.head[0]&2 != 0
	var size uint64
	switch {
	case !long && g.have == 2:
		size = uint64(g.head[1])
	case g.have == 9:
		size = binary.BigEndian.Uint64(g.head[1:])
	default:
		return nil
	}
	g.have = 0
	g.frames++
	if size > uint64(g.limit-g.bytes) || g.frames > maxFrames {
		return fmt.Errorf("%w: frame %d has %d bytes after %d, want at most %d frames and %d bytes", errTooLong, g.frames, size, g.bytes,
			maxFrames, g.limit)
	}
	g.body = int(size)
	g.bytes += int(size)
	if g.head[0]&1 == 0 {
		g.bytes, g.frames = 0, 0
	}
	return nil
}
