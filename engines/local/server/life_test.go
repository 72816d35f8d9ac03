package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/local"
	"github.com/ragpilot/ragpilot/engines/local/localtest"
	"github.com/ragpilot/ragpilot/engines/local/server"
)

// endless is a completion that goes on for longer than a test, of a model that has the room.
const endless = `{"prompt":"The tide is in the harbour and the boats are out.","max_tokens":60000,"ignore_eos":true`

func roomy(s *settings) { s.model.Context = 1 << 16 }

// open sends a completion and returns its answer's body once it has begun.
func (r *rig) open(ctx context.Context, t testing.TB, body string) *bufio.Reader {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.http.URL+textPath, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.http.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return bufio.NewReader(resp.Body)
}

// A client that goes away ends its request, streamed or not, running or waiting, and the memory is free again.
func TestClientGone(t *testing.T) {
	r := start(t, func(s *settings) {
		roomy(s)
		s.engine.Running = 1
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := r.open(ctx, t, endless+`,"stream":true}`)
	if _, err := first.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for _, body := range []string{endless + `}`, endless + `,"stream":true}`} { // they wait behind the first
		group.Go(func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.http.URL+textPath, strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			if resp, err := r.http.Client().Do(req); err == nil {
				_ = resp.Body.Close()
				t.Error("an answer to a request that was waiting")
			}
		})
	}
	await(t, "waiting requests", func() bool { return r.engine.Stats().Waiting == 2 })
	if r.engine.Stats().UsedBlocks == 0 {
		t.Error("nothing is in use")
	}
	cancel()
	group.Wait()
	await(t, "free blocks", func() bool {
		s := r.engine.Stats()
		return s.UsedBlocks == 0 && s.Running == 0 && s.Waiting == 0
	})
	await(t, "a count of it", func() bool {
		return strings.Contains(string(r.do(t, http.MethodGet, "/metrics", "").body), `finished_reason="abort",model_name="tiny"} 3`)
	})
	if got := r.engine.Stats().GeneratedTokens; got >= 60_000 {
		t.Errorf("%d tokens were generated after the client had gone", got)
	}
}

// A client that does not read its answer delays no other, and is dropped.
func TestSlowClient(t *testing.T) {
	r := start(t, func(s *settings) { s.server.IOTimeout = 300 * time.Millisecond })
	prompts := strings.Repeat(`"The tide is in the harbour.",`, 15) + `"The boats are out."`
	body := `{"prompt":[` + prompts + `],"max_tokens":900,"ignore_eos":true,"stream":true}`
	r.deaf(t, textPath, body)
	await(t, "its answer", func() bool { return r.engine.Stats().GeneratedTokens > 0 })
	for range 3 { // others are answered meanwhile
		if got := r.post(t, chatPath, `{`+ask+`}`); got.status != http.StatusOK {
			t.Fatalf("status %d: %s", got.status, got.body)
		}
	}
	await(t, "its end", func() bool {
		s := r.engine.Stats()
		return s.Running == 0 && s.UsedBlocks == 0 &&
			!strings.Contains(string(r.do(t, http.MethodGet, "/metrics", "").body), `finished_reason="abort",model_name="tiny"} 0`)
	})
	if got := r.post(t, chatPath, `{`+ask+`}`); got.status != http.StatusOK {
		t.Errorf("status %d: %s", got.status, got.body)
	}
}

// Who asks for tokens and does not read them is let go as well.
func TestSlowTokenizer(t *testing.T) {
	r := start(t, func(s *settings) { s.server.IOTimeout, s.server.MaxRequests = 300*time.Millisecond, 1 })
	body := `{"prompt":"` + strings.Repeat("The tide is in. ", 60_000) + `","return_token_strs":true}`
	r.deaf(t, "/tokenize", body)
	await(t, "its place is taken", func() bool { return r.post(t, "/tokenize", `{"prompt":"a"}`).status == http.StatusTooManyRequests })
	await(t, "its end", func() bool { return r.post(t, "/tokenize", `{"prompt":"a"}`).status == http.StatusOK })
}

// deaf sends a request, at an address of its own where little is buffered, and does not read its answer.
func (r *rig) deaf(t *testing.T, path, body string) {
	t.Helper()
	api := &http.Server{Handler: r.api, ReadHeaderTimeout: time.Minute}
	second, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		_ = api.Close()
		serving.Wait()
	})
	serving.Go(func() { _ = api.Serve(&narrow{second}) })
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", second.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(1024)
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// narrow has connections that buffer little.
type narrow struct{ net.Listener }

func (n *narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err == nil {
		_ = c.(*net.TCPConn).SetWriteBuffer(1024)
	}
	return c, err
}

// At the end no more requests are taken; those that run may go on, and are cut when the time is over.
func TestShutdown(t *testing.T) {
	for _, patient := range []bool{true, false} {
		t.Run(map[bool]string{true: "in time", false: "cut"}[patient], func(t *testing.T) {
			r := start(t, roomy)
			length := 60_000
			if patient {
				length = 100
			}
			lines := r.open(t.Context(), t, fmt.Sprintf(`{"prompt":"The tide","max_tokens":%d,"ignore_eos":true,"stream":true}`, length))
			if _, err := lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if !patient {
				cancel()
			}
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- r.api.Shutdown(ctx) }()
			await(t, "the announcement", func() bool { return r.do(t, http.MethodGet, "/health", "").status == http.StatusServiceUnavailable })
			if got := r.post(t, chatPath, `{`+ask+`}`); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
				t.Errorf("a new request: status %d, %s", got.status, got.body)
			}
			if got := r.post(t, "/tokenize", `{"prompt":"a"}`); got.status != http.StatusServiceUnavailable {
				t.Errorf("tokens: status %d, %s", got.status, got.body)
			}
			rest, err := io.ReadAll(lines)
			if err != nil {
				t.Fatal(err)
			}
			if err := <-ended; (err == nil) != patient {
				t.Errorf("shutdown: %v", err)
			}
			cut := strings.Contains(string(rest), "shutting down")
			if !strings.HasSuffix(string(rest), "data: [DONE]\n\n") || cut == patient {
				t.Errorf("the stream ends in %q", rest[max(0, len(rest)-300):])
			}
			await(t, "free blocks", func() bool { s := r.engine.Stats(); return s.Running == 0 && s.UsedBlocks == 0 })
		})
	}
}

// A body that does not come in time gets a 408. The server's end does not wait for one.
func TestSlowBody(t *testing.T) {
	for _, c := range []struct {
		name     string
		patience time.Duration
		want     string
	}{{"late", 50 * time.Millisecond, "HTTP/1.1 408 "}, {"shutdown", time.Hour, "HTTP/1.1 503 "}} {
		for _, path := range []string{chatPath, "/tokenize"} {
			t.Run(c.name+" "+path, func(t *testing.T) {
				r := start(t, func(s *settings) { s.server.IOTimeout = c.patience })
				conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.http.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n", path)
				lines := bufio.NewReader(conn)
				if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") { // it reads the body
					t.Fatalf("%q, %v", line, err)
				}
				_, _ = lines.ReadString('\n')
				if c.patience > time.Minute {
					ctx, cancel := context.WithCancel(t.Context())
					cancel()
					if err := r.api.Shutdown(ctx); !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				}
				answer, err := io.ReadAll(lines)
				if err != nil || !strings.HasPrefix(string(answer), c.want) || !strings.Contains(string(answer), "Connection: close") {
					t.Errorf("%q, %v", answer, err)
				}
			})
		}
	}
}

// More than MaxRequests get a 429.
func TestTooMany(t *testing.T) {
	r := start(t, func(s *settings) {
		roomy(s)
		s.server.MaxRequests = 1
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.open(ctx, t, endless+`,"stream":true}`)
	for path, body := range map[string]string{chatPath: `{` + ask + `}`, "/tokenize": `{"prompt":"a"}`, "/detokenize": `{"tokens":[5]}`} {
		if got := r.post(t, path, body); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
			t.Errorf("%s: status %d: %s", path, got.status, got.body)
		}
	}
	cancel()
	await(t, "a free place", func() bool { return r.post(t, chatPath, `{`+ask+`}`).status == http.StatusOK })
}

// The cache is not emptied while requests use it.
func TestReset(t *testing.T) {
	r := start(t, roomy)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.open(ctx, t, endless+`,"stream":true}`)
	if o := r.post(t, "/reset_prefix_cache", "").object(t); o["success"] != false {
		t.Errorf("%v", o)
	}
	cancel()
	await(t, "an empty cache", func() bool {
		return r.post(t, "/reset_prefix_cache", "").object(t)["success"] == true && r.engine.Stats().CachedBlocks == 0
	})
}

// A tenant's files are deleted, others stay.
func TestForget(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := localtest.WriteModel(model, 1); err != nil {
		t.Fatal(err)
	}
	engine, err := local.Open(local.Config{Model: model, CacheDir: dir, DiskSalted: true})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	s := server.New(engine, server.Config{})
	post := func(path, body string) int {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
		return w.Code
	}
	for i, salt := range []string{`"one"`, `"two"`} {
		if got := post(textPath, `{"prompt":"`+strings.Repeat("The harbour. ", 6)+`","max_tokens":1,"cache_salt":`+salt+`}`); got != http.StatusOK {
			t.Fatalf("status %d", got)
		}
		await(t, "the blocks are in files", func() bool { return engine.Stats().Disk.Blocks >= 3*(i+1) })
	}
	before := engine.Stats().Disk.Blocks
	for body, want := range map[string]int{`{"cache_salt":7}`: 400, `{`: 400, `{"cache_salt":"none"}`: 200} {
		if got := post("/forget", body); got != want || engine.Stats().Disk.Blocks != before {
			t.Errorf("%s: status %d, want %d; %d of %d blocks are left", body, got, want, engine.Stats().Disk.Blocks, before)
		}
	}
	if got := post("/forget", `{"cache_salt":"one"}`); got != http.StatusOK || engine.Stats().Disk.Blocks != before/2 {
		t.Errorf("status %d; %d of %d blocks are left", got, engine.Stats().Disk.Blocks, before)
	}
}

// Many streams at a time, and some end early: each gets its own answer, the one that it gets alone.
func TestTogether(t *testing.T) {
	r := start(t, nil)
	body := func(i int) string {
		return fmt.Sprintf(
			`{"prompt":"%s Boat %d goes out with the tide.","max_tokens":40,"ignore_eos":true,"stream":true}`,
			strings.Repeat("The harbour. ", i%4),
			i%8,
		)
	}
	text := func(a answered) string {
		var b strings.Builder
		for _, e := range a.events(t) {
			s, _ := at(e, "choices", 0, "text").(string)
			b.WriteString(s)
		}
		return b.String()
	}
	var alone [8]string
	for i := range alone {
		alone[i] = text(r.post(t, textPath, body(i)))
	}
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			if i%4 == 3 { // goes away
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.http.URL+textPath, strings.NewReader(body(i)))
				if err != nil {
					t.Error(err)
					return
				}
				if resp, err := r.http.Client().Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				return
			}
			if got := text(r.post(t, textPath, body(i))); got != alone[i%8] {
				t.Errorf("%d: %q, alone %q", i, got, alone[i%8])
			}
		})
	}
	group.Wait()
	await(t, "free blocks", func() bool { s := r.engine.Stats(); return s.UsedBlocks == 0 && s.Running+s.Waiting == 0 })
}
