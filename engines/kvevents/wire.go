package kvevents

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
)

// link is one ZeroMQ connection. The library's connections are used and not its sockets: a socket takes the length
// of a frame from the peer and allocates it, does not tell one peer from another, and leaves goroutines behind when
// it is closed with messages unread.
type link struct {
	*zmq4.Conn
	net net.Conn
}

func dial(ctx context.Context, kind zmq4.SocketType, to address, timeout time.Duration, limit int) (*link, error) {
	d := net.Dialer{Timeout: timeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}}
	c, err := d.DialContext(ctx, to.network, to.addr)
	if err != nil {
		return nil, err
	}
	return open(ctx, c, kind, false, timeout, limit)
}

// open shakes hands. It closes c if that does not work out.
func open(ctx context.Context, c net.Conn, kind zmq4.SocketType, server bool, timeout time.Duration, limit int) (*link, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	_ = c.SetDeadline(time.Now().Add(timeout))
	z, err := zmq4.Open(&guard{Conn: c, r: bufio.NewReaderSize(c, 64<<10), greeting: greetingBytes, limit: limit}, null.Security(), kind, nil, server, nil)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	_ = c.SetDeadline(time.Time{})
	return &link{z, c}, nil
}

// receive returns the frames of the next message.
func (l *link) receive() ([][]byte, error) {
	for {
		msg, err := l.RecvMsg()
		if err != nil {
			return nil, err
		}
		if msg.Type != zmq4.CmdMsg {
			return msg.Frames, nil
		}
	}
}

// subscribe asks for topics with a prefix.
func (l *link) subscribe(topic string) error {
	return l.SendMsg(zmq4.NewMsg(append([]byte{1}, topic...)))
}

// bind listens. A socket file that nobody listens on any more is taken over.
func bind(ctx context.Context, at address) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, at.network, at.addr)
	if err == nil || at.network != "unix" || strings.HasPrefix(at.addr, "@") {
		return l, err
	}
	c, dialErr := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, at.network, at.addr)
	if dialErr == nil {
		_ = c.Close()
		return nil, err
	}
	if info, statErr := os.Stat(at.addr); statErr != nil || info.Mode()&os.ModeSocket == 0 {
		return nil, err
	}
	if os.Remove(at.addr) != nil {
		return nil, err
	}
	return lc.Listen(ctx, at.network, at.addr)
}

const (
	greetingBytes = 64 // of ZMTP 3
	maxFrames     = 16 // of one message; those that we want have 4 at most
)

var errTooLong = errors.New("message too long")

// guard reads ahead, and follows the framing of ZMTP 3 to end a connection before a message that is too long is read,
// or allocated.
type guard struct {
	net.Conn
	r        *bufio.Reader
	greeting int // bytes of the greeting that are still to come
	head     [9]byte
	have     int // bytes of head
	body     int // bytes of the frame that are still to come
	bytes    int // of the message so far
	frames   int
	limit    int
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

// frame looks at what is there of a frame's header: flags (1: more frames follow, 2: a long frame) and its length.
func (g *guard) frame() error {
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
		return fmt.Errorf("%w: frame %d has %d bytes after %d, want at most %d frames and %d bytes", errTooLong, g.frames, size, g.bytes, maxFrames, g.limit)
	}
	g.body = int(size)
	g.bytes += int(size)
	if g.head[0]&1 == 0 {
		g.bytes, g.frames = 0, 0
	}
	return nil
}
