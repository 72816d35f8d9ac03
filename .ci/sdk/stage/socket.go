package stage

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// socket answers GET /v1/responses over a WebSocket (RFC 6455): to each response.create the events of its model's
// script, until the client closes. It knows what the SDKs send: whole text frames, masked, below 64 KiB.
func socket(w http.ResponseWriter, r *http.Request) {
	digest := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Request-Id: req_fake\r\nSec-WebSocket-Accept: "+
		base64.StdEncoding.EncodeToString(digest[:])+"\r\n\r\n")
	const text, closing = 1, 8
	for {
		kind, body, err := readFrame(rw.Reader)
		switch {
		case err != nil:
			return
		case kind == closing:
			_, _ = conn.Write(frame(closing, body))
			return
		case kind != text:
			continue
		}
		var q struct{ Type, Model string }
		if json.Unmarshal(body, &q) != nil || q.Type != "response.create" {
			return
		}
		for _, e := range responsesAPI.events(q.Model, "0") {
			_, data, _ := strings.Cut(strings.TrimSpace(e), "\ndata: ")
			if _, err := conn.Write(frame(text, []byte(data))); err != nil {
				return
			}
		}
	}
}

func frame(kind byte, body []byte) []byte {
	head := []byte{0x80 | kind, byte(len(body))}
	if len(body) > 125 {
		head = binary.BigEndian.AppendUint16([]byte{0x80 | kind, 126}, uint16(len(body)))
	}
	return append(head, body...)
}

func readFrame(r *bufio.Reader) (kind byte, body []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := uint16(head[1] & 0x7f)
	if size == 126 {
		if err := binary.Read(r, binary.BigEndian, &size); err != nil {
			return 0, nil, err
		}
	}
	if head[0]&0x80 == 0 || head[1]&0x80 == 0 || head[1]&0x7f == 127 {
		return 0, nil, errors.New("not a whole, masked frame below 64 KiB")
	}
	var mask [4]byte
	body = make([]byte, size)
	if _, err := io.ReadFull(r, mask[:]); err != nil {
		return 0, nil, err
	}
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, err
	}
	for i := range body {
		body[i] ^= mask[i%4]
	}
	return head[0] & 0x0f, body, nil
}
