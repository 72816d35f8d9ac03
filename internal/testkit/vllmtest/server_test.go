//go:build unix

package vllmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines/openai"
	"github.com/ragpilot/ragpilot/engines/vllm"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// served is the name under which the servers offer their model.
const served = "model"

// options say how a server is started.
type options struct {
	python, model string
	block         int // tokens of a cache block: the CPU's kernels take multiples of 32
	blocks        int // cache blocks, one of which vLLM keeps for itself
	window        int // tokens of prompt and answer
	dtype         string
	threads       int
	gigabytes     int      // of cache, at least what the blocks take
	replay        bool     // with a socket that gives past events again
	more          []string // flags behind the others, which win
}

// server is a vLLM server on this machine. It ends with the test.
type server struct {
	t       *testing.T
	options options
	folder  string
	address string // host:port
	cmd     *exec.Cmd
	log     *os.File
	// Took is how long the latest start lasted.
	took time.Duration
}

// serve starts a server and waits until it is healthy.
func serve(t *testing.T, o options) *server {
	t.Helper()
	// Paths of sockets are short; those of t.TempDir need not be.
	folder, err := os.MkdirTemp("", "rp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	s := &server{t: t, options: o, folder: folder, address: testkit.FreeAddress(t)}
	t.Cleanup(func() { s.kill() })
	s.start()
	return s
}

func (s *server) url() string    { return "http://" + s.address }
func (s *server) events() string { return "ipc://" + filepath.Join(s.folder, "events") }
func (s *server) replay() string {
	if !s.options.replay {
		return ""
	}
	return "ipc://" + filepath.Join(s.folder, "replay")
}

// start starts the server, at the same places as before if it ran before.
func (s *server) start() {
	s.t.Helper()
	began := time.Now()
	log, err := os.OpenFile(filepath.Join(s.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	s.log = log
	s.cmd = exec.CommandContext(context.Background(), s.options.python, s.arguments()...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.Env = append(os.Environ(),
		"HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1", "VLLM_SERVER_DEV_MODE=1", "VLLM_CPU_OMP_THREADS_BIND=nobind",
		"VLLM_CPU_KVCACHE_SPACE="+strconv.Itoa(max(s.options.gigabytes, 1)), "OMP_NUM_THREADS="+strconv.Itoa(max(s.options.threads, 1)))
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // vLLM is several processes, which are ended together
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	// Who started the tests can end the server by this if they cannot.
	if err := os.WriteFile(filepath.Join(s.folder, "pid"), fmt.Appendln(nil, s.cmd.Process.Pid), 0o600); err != nil {
		s.t.Error(err)
	}
	s.await(10 * time.Minute)
	s.took = time.Since(began)
	s.t.Logf("vLLM is ready after %v; load %s", s.took.Round(time.Second), machineLoad())
}

func (s *server) arguments() []string {
	o := s.options
	events := map[string]any{"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": s.events(), "topic": "kv@test@" + served}
	if o.replay {
		events["replay_endpoint"] = s.replay()
	}
	text, err := json.Marshal(events)
	if err != nil {
		s.t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	return append([]string{
		"-m", "vllm.entrypoints.openai.api_server", "--model", o.model, "--served-model-name", served,
		"--host", host, "--port", port, "--dtype", o.dtype, "--enforce-eager",
		"--max-model-len", strconv.Itoa(o.window), "--max-num-seqs", "4",
		"--block-size", strconv.Itoa(o.block), "--num-gpu-blocks-override", strconv.Itoa(o.blocks),
		"--enable-prefix-caching", "--enable-prompt-tokens-details", "--kv-events-config", string(text),
	}, o.more...)
}

// await waits until the server is healthy.
func (s *server) await(limit time.Duration) {
	s.t.Helper()
	ended := make(chan struct{})
	cmd := s.cmd
	go func() {
		defer close(ended)
		_ = cmd.Wait() // killed
	}()
	s.t.Cleanup(func() {
		s.kill()
		<-ended
	})
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for until := time.Now().Add(limit); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		select {
		case <-ended:
			s.t.Fatalf("vLLM ended: %v\n%s", cmd.ProcessState, s.tail())
		default:
		}
		request := testkit.Request(s.t, http.MethodGet, s.url()+"/health", http.NoBody)
		response, err := client.Do(request)
		if err != nil {
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return
		}
	}
	s.t.Fatalf("vLLM is not ready after %v\n%s", limit, s.tail())
}

// tail returns the end of what the server has printed.
func (s *server) tail() string {
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// kill ends all of the server's processes at once, as kill -9 does, and waits until the port is free.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	s.cmd = nil
	_ = os.Remove(filepath.Join(s.folder, "pid"))
	_ = s.log.Close()
	for range 100 {
		conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", strings.TrimPrefix(s.url(), "http://"))
		if err != nil {
			return
		}
		_ = conn.Close()
		time.Sleep(50 * time.Millisecond)
	}
}

// client returns an engine for this server that knows what it can do.
func (s *server) client(config vllm.Config) *vllm.Engine {
	s.t.Helper()
	config.Server.BaseURL, config.Server.Model = s.url(), served
	// A prompt of a few thousand tokens may take a minute on a busy machine.
	config.Server.Timeouts = openai.Timeouts{Header: 10 * time.Minute, Idle: 10 * time.Minute}
	config.Patience = time.Minute
	engine, err := vllm.New(config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = engine.Close() })
	if _, err := engine.Detect(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return engine
}

// machineLoad is how many processes want to run, over the last minutes; figures are worth as much as it is low.
func machineLoad() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(2, len(fields))], " ")
}
