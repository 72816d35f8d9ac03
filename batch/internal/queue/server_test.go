//go:build unix

package queue_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ragpilot/ragpilot/batch/internal/queue"
	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
)

// postgresServer is a PostgreSQL server that a test can kill and start again on the same data. Its own settings let commits be lost
// (synchronous_commit=off).
type postgresServer struct {
	*storetest.Server
	folder string
	args   []string
}

func startPostgres(t *testing.T) *postgresServer {
	t.Helper()
	if testing.Short() {
		t.Skip("starts and kills a server")
	}
	storetest.Postgres(t) // skips where no stores are wanted
	s := &postgresServer{Server: storetest.Start(t, "postgres")}
	data, err := os.ReadFile(filepath.Join(s.Run, "postgres.data"))
	if err != nil {
		t.Fatal(err)
	}
	s.folder = filepath.Join(strings.TrimSpace(string(data)), "db")
	text, err := os.ReadFile(filepath.Join(s.folder, "postmaster.opts"))
	if err != nil {
		t.Fatal(err)
	}
	for arg := range strings.FieldsSeq(string(text)) {
		s.args = append(s.args, strings.Trim(arg, `"`))
	}
	return s
}

func (s *postgresServer) dsn() string {
	return "postgres://ragpilot@" + s.Addr + "/postgres?sslmode=disable&connect_timeout=5"
}

// immediate ends the server as pg_ctl stop -m immediate does: without a checkpoint.
func (s *postgresServer) immediate(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(s.process(t), syscall.SIGQUIT); err != nil {
		t.Error(err)
	}
}

// crash ends the server and all its processes at once.
func (s *postgresServer) crash(t *testing.T) {
	t.Helper()
	id := s.process(t)
	if err := syscall.Kill(-id, syscall.SIGKILL); err != nil { // servers.sh and restart make it a process group
		t.Error(err)
	}
}

func (s *postgresServer) process(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Run, "postgres.pid"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// restart starts the server again and waits until it answers.
func (s *postgresServer) restart(t *testing.T) {
	t.Helper()
	args := s.args
	if os.Getuid() == 0 { // the server refuses to run as root
		args = append([]string{"setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--"}, args...)
	}
	eventually(t, "a restart of the server", func() bool {
		cmd := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // servers.sh ends it
		cmd.Dir, cmd.SysProcAttr = filepath.Dir(s.folder), &syscall.SysProcAttr{Setsid: true}
		var out bytes.Buffer
		cmd.Stderr = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid := []byte(strconv.Itoa(cmd.Process.Pid))
		if err := os.WriteFile(filepath.Join(s.Run, "postgres.pid"), pid, 0o600); err != nil {
			t.Error(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(ended)
		}()
		for {
			select {
			case <-ended: // processes of the killed server still hold its memory
				time.Sleep(50 * time.Millisecond)
				return false
			case <-time.After(20 * time.Millisecond):
			}
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			conn, err := pgx.Connect(ctx, s.dsn())
			if err == nil {
				_ = conn.Close(ctx)
			}
			cancel()
			if err == nil {
				return true
			}
		}
	})
}

// The server is killed again and again while workers run. Each answer whose Store has returned is there, each request is answered once,
// and work goes on by itself.
func TestServerKilled(t *testing.T) {
	s := startPostgres(t)
	dsn := storetest.Schema(t, s.dsn())
	q, e := open(t, dsn), newEngine()
	job := create(t, q, "server", requests(80, 25))
	var mu sync.Mutex
	stored := map[int]bool{}
	do := func(ctx context.Context, sub queue.Subtree) error {
		for i := range sub.Requests {
			select {
			case <-sub.Stop:
				return nil
			case <-time.After(2 * time.Millisecond):
			}
			a := e.answer(&sub, &sub.Requests[i])
			if err := sub.Store(ctx, a); err != nil {
				return err
			}
			mu.Lock()
			stored[a.Seq] = true
			mu.Unlock()
		}
		return nil
	}
	work(t, q, queue.WorkerOptions{Lanes: 2, Do: do})
	work(t, open(t, dsn), queue.WorkerOptions{Lanes: 2, Do: do})
	for i, end := range []func(*testing.T){s.crash, s.immediate, s.crash} {
		eventually(t, "answers", func() bool { return e.count() > 60+400*i })
		end(t)
		mu.Lock()
		want := make([]int, 0, len(stored))
		for seq := range stored {
			want = append(want, seq)
		}
		mu.Unlock()
		time.Sleep(300 * time.Millisecond)
		s.restart(t)
		have := map[int]bool{}
		for a, err := range q.Answers(t.Context(), job.ID) {
			if err != nil {
				t.Fatal(err)
			}
			have[a.Seq] = true
		}
		for _, seq := range want {
			if !have[seq] {
				t.Errorf("kill %d: answer %d was stored and is lost", i, seq)
			}
		}
	}
	wait(t, q, job)
	complete(t, q, job, 2000)
	t.Logf("%d calls for 2000 requests", e.count())
	if n := e.count() - 2000; n > 3*4 { // what was in flight, if a fetch of another worker met it
		t.Errorf("%d calls were repeated", n)
	}
}

// Commits of our connections wait for the disk, whatever the server's setting is.
func TestSynchronousCommit(t *testing.T) {
	dsn := storetest.Postgres(t)
	for params, want := range map[string]string{"": "on", "&synchronous_commit=off": "on", "&synchronous_commit=local": "local"} {
		q := open(t, storetest.Schema(t, dsn)+params)
		if got, err := queue.QueryText(t.Context(), q, "SHOW synchronous_commit"); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%q: synchronous_commit is %v, %v, want %s", params, got, err, want)
		}
	}
}

// relay passes connections on to a server until they are cut.
type relay struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	conns map[net.Conn]bool // guarded by mu
	down  bool              // guarded by mu; new connections are closed at once
	wg    sync.WaitGroup
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: listener, to: to, conns: map[net.Conn]bool{}}
	r.wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r.wg.Go(func() { r.pass(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		r.cut(true)
		r.wg.Wait()
	})
	return r
}

func (r *relay) pass(conn net.Conn) {
	defer conn.Close()
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", r.to)
	if err != nil {
		return
	}
	defer server.Close()
	r.mu.Lock()
	if r.down {
		r.mu.Unlock()
		return
	}
	r.conns[conn], r.conns[server] = true, true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.conns, conn)
		delete(r.conns, server)
	}()
	done := make(chan struct{}, 2)
	for from, to := range map[net.Conn]net.Conn{conn: server, server: conn} {
		r.wg.Go(func() {
			buffer := make([]byte, 4096)
			for {
				n, err := from.Read(buffer)
				if err == nil {
					_, err = to.Write(buffer[:n])
				}
				if err != nil {
					break
				}
			}
			done <- struct{}{}
		})
	}
	<-done
}

// cut closes all connections, and new ones as long as it is down.
func (r *relay) cut(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
	for conn := range r.conns {
		_ = conn.Close()
	}
}

// The network to the server is cut again and again, in the middle of statements and commits.
func TestNetworkCut(t *testing.T) {
	dsn := storetest.PostgresSchema(t)
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	server := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	r := newRelay(t, server)
	if !strings.Contains(dsn, server) {
		t.Skip("POSTGRES_DSN names no host and port")
	}
	q := open(t, strings.Replace(dsn, server, r.listener.Addr().String(), 1))
	e := newEngine()
	job := create(t, q, "cut", requests(60, 25))
	work(t, q, queue.WorkerOptions{Lanes: 4, Do: func(ctx context.Context, s queue.Subtree) error {
		time.Sleep(10 * time.Millisecond)
		return e.do(ctx, s)
	}})
	for i := range 10 {
		eventually(t, fmt.Sprint("work before cut ", i), func() bool { return e.count() > 20+100*i })
		r.cut(i%3 == 2)
		if i%3 == 2 {
			time.Sleep(700 * time.Millisecond)
			r.cut(false)
		}
	}
	wait(t, q, job)
	complete(t, q, job, 1500)
	t.Logf("%d calls for 1500 requests", e.count())
}
