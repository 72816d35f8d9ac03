package stage

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"
)

// process is a running program and what it has said.
type process struct {
	name string
	addr string // where it listens, host:port
	cmd  *exec.Cmd
	read chan struct{} // closed when it says nothing any more

	mu   sync.Mutex
	said strings.Builder
}

// listens finds the address in what the program says: that of serve, then that of bench upstream.
var listens = regexp.MustCompile(`msg=listening addr=(\S+)|^listening on http://(\S+)`)

// start runs the program until it says where it listens.
func start(name, bin string, env []string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(bin, args...), read: make(chan struct{})}
	p.cmd.Env = append(environment(), env...)
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	p.cmd.Stdout, p.cmd.Stderr = in, in
	if err := p.cmd.Start(); err != nil {
		_ = out.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	ready := make(chan string, 1)
	go p.listen(out, ready)
	select {
	case p.addr = <-ready:
		return p, nil
	case <-p.read:
	case <-time.After(Patience):
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	return nil, fmt.Errorf("%s (%s) does not say where it listens:\n%s", name, strings.Join(args, " "), p.output())
}

func (p *process) listen(out io.ReadCloser, ready chan<- string) {
	defer close(p.read)
	defer out.Close()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		p.mu.Lock()
		p.said.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
		if found := listens.FindStringSubmatch(lines.Text()); found != nil {
			select {
			case ready <- found[1] + found[2]:
			default:
			}
		}
	}
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// stop ends the program as a service manager does. An error tells that it did not end well, had to panic in between, or
// logged a key.
func (p *process) stop(secrets ...string) error {
	_ = p.cmd.Process.Signal(os.Interrupt)
	kill := time.AfterFunc(Patience, func() { _ = p.cmd.Process.Kill() })
	<-p.read
	err := p.cmd.Wait()
	kill.Stop()
	said := p.output()
	if strings.Contains(said, "panic") {
		err = errors.Join(err, errors.New("it panicked"))
	}
	for _, secret := range secrets {
		if strings.Contains(said, secret) {
			err = errors.Join(err, fmt.Errorf("it logged the key %q", secret))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w:\n%s", p.name, err, said)
	}
	return nil
}

// environment is this process's without what would change the program's settings.
func environment() (out []string) {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(strings.ToUpper(v), "=")
		if !strings.HasPrefix(name, "RAGPILOT_") && !strings.HasPrefix(name, "CONTEXTPILOT_") && !strings.HasSuffix(name, "_PROXY") {
			out = append(out, v)
		}
	}
	return out
}
