package publish

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// ZMTP 3.0 (RFC 23 of ZeroMQ), of a side that listens, with the mechanism NULL. A peer is believed nothing: what it sends is short,
// or the connection ends before it is read.

const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// Bounds of a message that a peer sends: a topic, or a number.
const (
	maxFrame  = 4096
	maxFrames = 8
)

// errPeer is wrapped by errors about what a peer sends.
var errPeer = errors.New("not a peer")

// wire is one connection's two directions. Reading and writing may be done at the same time, each by one goroutine.
type wire struct {
	conn     net.Conn
	patience time.Duration // for each write to conn; 0: as long as the deadline that it has
	r        *bufio.Reader
	w        *bufio.Writer
}

func newWire(conn net.Conn) *wire {
	x := &wire{conn: conn, r: bufio.NewReaderSize(conn, 1024)}
	x.w = bufio.NewWriterSize(patient{x}, 64<<10)
	return x
}

// patient is the connection, with a deadline for each write.
type patient struct{ *wire }

func (x patient) Write(b []byte) (int, error) {
	if x.patience > 0 {
		_ = x.conn.SetWriteDeadline(time.Now().Add(x.patience)) // what fails shows in the write
	}
	return x.conn.Write(b)
}

// greeting is what both sides begin with: signature, version 3.0, mechanism, and who is the server, which NULL leaves open.
func greeting() []byte {
	g := make([]byte, 64)
	g[0], g[9], g[10] = 0xff, 0x7f, 3
	copy(g[12:], "NULL")
	return g
}

// socket is a kind of socket, and those that may connect to it.
type socket struct {
	name  string
	peers []string
}

var (
	pubSocket    = socket{"PUB", []string{"SUB", "XSUB"}}
	routerSocket = socket{"ROUTER", []string{"DEALER", "REQ", "ROUTER"}}
)

// handshake greets the peer, and checks that its socket fits.
func (x *wire) handshake(own socket) error {
	ready := property([]byte("\x05READY"), "Socket-Type", own.name)
	_, _ = x.w.Write(greeting())
	_ = x.frame(flagCommand, ready)
	if err := x.w.Flush(); err != nil {
		return err
	}
	var theirs [64]byte
	if _, err := io.ReadFull(x.r, theirs[:]); err != nil {
		return err
	}
	if theirs[0] != 0xff || theirs[9]&1 == 0 || theirs[10] < 3 || !bytes.Equal(theirs[12:32], greeting()[12:32]) {
		return fmt.Errorf("%w: greeting %x, want ZMTP 3 with NULL", errPeer, theirs[:32])
	}
	flags, body, err := x.read()
	if err != nil {
		return err
	}
	rest, ok := bytes.CutPrefix(body, []byte("\x05READY"))
	if flags&flagCommand == 0 || !ok {
		return fmt.Errorf("%w: no READY", errPeer)
	}
	if kind := find(rest, "Socket-Type"); !slices.Contains(own.peers, kind) {
		return fmt.Errorf("%w: socket type %q, want one of %q", errPeer, kind, own.peers)
	}
	return nil
}

func property(b []byte, name, value string) []byte {
	b = append(append(b, byte(len(name))), name...)
	return append(binary.BigEndian.AppendUint32(b, uint32(len(value))), value...)
}

// find returns a property of a READY command, "" if it is not there.
func find(b []byte, name string) string {
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 1+n+4 {
			return ""
		}
		key, length := string(b[1:1+n]), uint64(binary.BigEndian.Uint32(b[1+n:]))
		if b = b[1+n+4:]; length > uint64(len(b)) {
			return ""
		}
		if key == name {
			return string(b[:length])
		}
		b = b[length:]
	}
	return ""
}

// read reads one frame.
func (x *wire) read() (flags byte, body []byte, err error) {
	if flags, err = x.r.ReadByte(); err != nil {
		return 0, nil, err
	}
	var head [8]byte
	length := head[7:]
	if flags&flagLong != 0 {
		length = head[:]
	}
	if _, err = io.ReadFull(x.r, length); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint64(head[:])
	if n > maxFrame || flags > flagMore|flagLong|flagCommand {
		return 0, nil, fmt.Errorf("%w: frame of %d bytes with flags %d", errPeer, n, flags)
	}
	body = make([]byte, n)
	_, err = io.ReadFull(x.r, body)
	return flags, body, err
}

// message reads the frames of a message. Commands, of which ZMTP 3.0 has none at this point, are passed over.
func (x *wire) message() ([][]byte, error) {
	var frames [][]byte
	for {
		flags, body, err := x.read()
		switch {
		case err != nil:
			return nil, err
		case flags&flagCommand != 0:
			continue
		}
		if frames = append(frames, body); flags&flagMore == 0 {
			return frames, nil
		}
		if len(frames) == maxFrames {
			return nil, fmt.Errorf("%w: message of more than %d frames", errPeer, maxFrames)
		}
	}
}

// send puts a message into the buffer, which is written when it is full, or flushed.
func (x *wire) send(frames ...[]byte) error {
	var err error
	for i, f := range frames {
		flags := byte(flagMore)
		if i == len(frames)-1 {
			flags = 0
		}
		err = x.frame(flags, f)
	}
	return err
}

// frame keeps the writer's first error: it is told by later calls, too.
func (x *wire) frame(flags byte, body []byte) error {
	if len(body) > 255 {
		_ = x.w.WriteByte(flags | flagLong)
		_, _ = x.w.Write(binary.BigEndian.AppendUint64(nil, uint64(len(body))))
	} else {
		_, _ = x.w.Write([]byte{flags, byte(len(body))})
	}
	_, err := x.w.Write(body)
	return err
}
