package h1_test

import (
	"bufio"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// The engine sends each answer twice. Two users of one tenant send 10,000 requests over the same connections, and no one gets the
// answer to another's request. net/http's transport puts a connection back before it has looked for such bytes: it is beside ours
// for comparison.
func TestUnsolicitedAnswers(t *testing.T) {
	requests := 10_000
	if testing.Short() {
		requests = 1000
	}
	engine := unsolicited(t)
	own, _ := client(t, nil)
	if wrong, failed := ask(t, own.Transport, engine, requests); wrong > 0 || failed > 0 {
		t.Errorf("%d of %d answers are another's, %d requests failed", wrong, requests, failed)
	}
	log.SetOutput(io.Discard) // it logs each
	defer log.SetOutput(os.Stderr)
	standard := &http.Transport{MaxIdleConnsPerHost: 100}
	defer standard.CloseIdleConnections()
	wrong, failed := ask(t, standard, engine, requests)
	t.Logf("net/http: %d of %d answers are another's, %d requests failed", wrong, requests, failed)
}

// ask sends requests of two users, and counts those that get what is not for them, or nothing.
func ask(t *testing.T, over http.RoundTripper, engine string, requests int) (wrong, failed int64) {
	t.Helper()
	var users sync.WaitGroup
	var others, none atomic.Int64
	for user := range 2 {
		users.Go(func() {
			for i := range requests / 2 {
				name := strconv.Itoa(user) + "-" + strconv.Itoa(i)
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, engine+"/"+name, strings.NewReader("{}"))
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := over.RoundTrip(req)
				if err != nil {
					none.Add(1)
					continue
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil {
					none.Add(1)
				} else if string(body) != name {
					others.Add(1)
				}
			}
		})
	}
	users.Wait()
	return others.Load(), none.Load()
}

// unsolicited starts such an engine, and returns its URL.
func unsolicited(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { tooMuch(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		open.Wait()
	})
	return "http://" + l.Addr().String()
}

// tooMuch answers each request of a connection twice.
func tooMuch(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		name := strings.TrimPrefix(req.URL.Path, "/")
		answer := "HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(len(name)) + "\r\n\r\n" + name
		if _, err := io.WriteString(conn, answer+answer); err != nil {
			return
		}
	}
}
