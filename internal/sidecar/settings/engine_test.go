package settings_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

func TestEngines(t *testing.T) {
	key := write(t, "engine.key", "secret\n")
	got, err := settings.Decode([]byte(`engines:
  - {kind: vllm, events: auto, url: "http://u:p@a:8000", api_key_file: `+key+`, models: [a, b], prompt_tokens: tokenize}
  - {kind: sglang, events: tcp://b:5557, replay: tcp://b:6557, ranks: 2, topic: kv, block_size: 16, name: b}
`), settings.Default())
	if err == nil {
		got, err = got.ReadSecrets()
	}
	if err != nil || got.Validate() != nil {
		t.Fatal(err, got.Validate())
	}
	want := []settings.Engine{
		{Kind: "vllm", Events: "auto", URL: "http://u:p@a:8000", APIKey: "secret", Models: []string{"a", "b"}, PromptTokens: "tokenize"},
		{Kind: "sglang", Events: "tcp://b:5557", Replay: "tcp://b:6557", Ranks: 2, Topic: "kv", BlockSize: 16, Name: "b"},
	}
	if diff := cmp.Diff(want, got.Engines); diff != "" {
		t.Error(diff)
	}
	if text := got.String(); strings.Contains(text, "u:p@") || strings.Contains(text, "secret") {
		t.Errorf("shows a secret: %s", text)
	}
	sources, err := got.Engines[1].Sources()
	if err != nil || len(sources) != 2 || sources[1].Endpoint != "tcp://b:5558" || sources[1].Replay != "tcp://b:6558" ||
		sources[1].Name != "b/dp1" {
		t.Errorf("%+v, %v", sources, err)
	}
	var names []string
	for _, e := range settings.NewLive(got).Load().Engines {
		names = append(names, e.Name)
	}
	if diff := cmp.Diff([]string{"vllm-0", "b"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestBadEngines(t *testing.T) {
	for want, e := range map[string]settings.Engine{
		`engines[0].kind ""`:               {Events: "auto"},
		`engines[0].events ""`:             {Kind: "vllm"},
		`engines[0].events "tcp://h"`:      {Kind: "vllm", Events: "tcp://h"},
		`engines[0].events "tcp://*:1"`:    {Kind: "vllm", Events: "tcp://*:1"},
		`engines[0].events "auto"`:         {Kind: "vllm", Events: "auto", Replay: "tcp://h:1"},
		`engines[0].replay "h:1"`:          {Kind: "vllm", Events: "tcp://h:1", Replay: "h:1"},
		`engines[0].ranks 2`:               {Kind: "vllm", Events: "ipc:///e", Ranks: 2},
		`engines[0].ranks 1000`:            {Kind: "vllm", Events: "tcp://h:1", Ranks: 1000},
		`engines[0].url "ftp://h"`:         {Kind: "vllm", Events: "auto", URL: "ftp://h"},
		`engines[0].api_key`:               {Kind: "vllm", Events: "auto", APIKey: "two words"},
		`engines[0].block_size -1`:         {Kind: "vllm", Events: "auto", BlockSize: -1},
		`engines[0].prompt_tokens "guess"`: {Kind: "vllm", Events: "auto", PromptTokens: "guess"},
		`engines[0].name "two words"`:      {Kind: "vllm", Events: "auto", Name: "two words"},
	} {
		cfg := settings.Default()
		cfg.Engines = []settings.Engine{e}
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	cfg := settings.Default()
	cfg.Engines = []settings.Engine{{Kind: "vllm", Events: "auto", Name: "a"}, {Kind: "vllm", Events: "auto", Name: "a"}}
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "engines[1].name") {
		t.Error(err)
	}
}

func TestEngineWarnings(t *testing.T) {
	cfg := settings.Default()
	cfg.CloudProvider = "openai"
	cfg.Engines = []settings.Engine{
		{Kind: "vllm", Events: "tcp://*:5557", Listen: true},
		{Kind: "vllm", Events: "tcp://127.0.0.1:5557", Listen: true, Replay: "tcp://h:1"},
	}
	testkit.Contains(
		t,
		"warnings",
		strings.Join(cfg.Warnings(), "\n"),
		"engines have no effect",
		"engines[0].events tcp://*:5557 can be reached",
		"engines[0] has no replay",
	)
	if n := len(cfg.Warnings()); n != len(settings.Default().Warnings())+3 {
		t.Error(cfg.Warnings())
	}
}
