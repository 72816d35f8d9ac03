package stage

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
)

// Keys of the scenarios. No process may log one, and CloudKey replaces ClientKey on its way to a provider.
const (
	ClientKey = "client-key"
	TeamKey   = "team-key"
	CloudKey  = "cloud-key"
)

// Places, as [Stage.URL] knows them.
const (
	Control = "control" // of the fake
	Direct  = "direct"  // the fake itself
	Sidecar = "sidecar" // in front of the fake
	Keyed   = "keyed"   // in front of the fake, for clients that have TeamKey
	Dead    = "dead"    // in front of nothing

	Bench     = "bench"     // the simulated engine itself
	Simulated = "simulated" // in front of the simulated engine

	Local       = "local"        // the local engine itself, with a model of random weights
	LocalBehind = "local-behind" // in front of it, following its cache events

	Anthropic    = "anthropic"     // --cloud-provider anthropic with CloudKey
	AnthropicOwn = "anthropic-own" // the same without a key
	OpenAI       = "openai"
	OpenAIOwn    = "openai-own"
	MiniMax      = "minimax"
)

// Stage is all processes and the fake.
type Stage struct {
	Fake      *Fake
	dir       string
	cloud     *cloud
	servers   []*httptest.Server
	processes []*process
	urls      map[string]string
}

// Up starts everything. bin is the program.
func Up(bin string) (s *Stage, err error) {
	s = &Stage{Fake: NewFake(), urls: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Down())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "ragpilot-sdk-"); err != nil {
		return s, err
	}
	team := filepath.Join(s.dir, "team.key")
	if err := os.WriteFile(team, []byte(TeamKey+"\n"), 0o600); err != nil {
		return s, err
	}
	if s.cloud, err = newCloud(s.Fake, s.dir); err != nil {
		return s, err
	}
	fake, control := httptest.NewServer(s.Fake), httptest.NewServer(s.Fake.Control())
	s.servers = append(s.servers, fake, control)
	s.urls[Direct], s.urls[Control] = fake.URL, control.URL
	nobody, err := freeAddress()
	if err != nil {
		return s, err
	}
	if err := s.start(Bench, bin, "bench", "upstream", "--listen", "127.0.0.1:0"); err != nil {
		return s, err
	}
	behind := map[string][]string{}
	if model := os.Getenv("RAGPILOT_TINY_MODEL"); model != "" {
		sockets := filepath.Join(s.dir, "kv")
		err := s.start(Local, bin, "engine", "serve", "--model", model, "--served-name", "tiny", "--listen", "127.0.0.1:0",
			"--kv-events", "ipc://"+sockets, "--kv-replay", "ipc://"+sockets+"-replay")
		if err != nil {
			return s, err
		}
		behind[LocalBehind] = []string{"--infer-api-url", s.urls[Local], "--kv-events", "auto"}
	}
	maps.Copy(behind, map[string][]string{
		Sidecar:   {"--infer-api-url", fake.URL},
		Keyed:     {"--infer-api-url", fake.URL, "--key-file", team},
		Dead:      {"--infer-api-url", "http://" + nobody},
		Simulated: {"--infer-api-url", s.urls[Bench]},
		Anthropic: {"--cloud-provider", "anthropic", "--cloud-api-key", CloudKey},
		OpenAI:    {"--cloud-provider", "openai", "--cloud-api-key", CloudKey},
		MiniMax:   {"--cloud-provider", "minimax", "--cloud-api-key", CloudKey},

		AnthropicOwn: {"--cloud-provider", "anthropic"},
		OpenAIOwn:    {"--cloud-provider", "openai"},
	})
	for name, args := range behind {
		args = append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-addr", "", "--drain", "3s"}, args...)
		if err := s.start(name, bin, args...); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *Stage) start(name, bin string, args ...string) error {
	p, err := start(name, bin, s.cloud.env, args...)
	if err != nil {
		return err
	}
	s.processes = append(s.processes, p)
	s.urls[name] = "http://" + p.addr
	return nil
}

// Has reports whether a place is there: those of the local engine need a model.
func (s *Stage) Has(place string) bool { return s.urls[place] != "" }

// URL returns the address of a place, without /v1.
func (s *Stage) URL(place string) string {
	if s.urls[place] == "" {
		panic("no such place: " + place)
	}
	return s.urls[place]
}

// URLs returns the addresses of all places.
func (s *Stage) URLs() map[string]string { return s.urls }

// CloudReachable tells why the program cannot meet the fake under the providers' names; empty if it can.
func CloudReachable() string {
	if runtime.GOOS != "linux" {
		return "Go reads SSL_CERT_FILE on Linux only"
	}
	return ""
}

// Down ends everything. An error tells which process did not end well.
func (s *Stage) Down() (err error) {
	for _, p := range s.processes {
		err = errors.Join(err, p.stop(ClientKey, TeamKey, CloudKey))
	}
	if s.cloud != nil {
		s.cloud.close()
	}
	for _, server := range s.servers {
		server.CloseClientConnections()
		server.Close()
	}
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// freeAddress is one where nobody listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("no free address: %w", err)
	}
	return l.Addr().String(), l.Close()
}
