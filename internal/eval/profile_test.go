package eval_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/eval"
)

func TestProfileApply(t *testing.T) {
	p := eval.Profile{Policy: "frequency", MaxDisplacement: 2, Pin: 1, Hint: "top-2", HintAlways: true, HintAfterQuestion: true, Dedup: "id", NoLocation: true}
	got, err := p.Apply(contextpilot.Config{SessionTTL: time.Minute, Notes: contextpilot.Notes{Location: "see {label}"}})
	if err != nil {
		t.Fatal(err)
	}
	want := contextpilot.Config{
		SessionTTL: time.Minute, Policy: "frequency", Dedup: contextpilot.DedupID, Limits: contextpilot.Limits{MaxDisplacement: 2, Pin: 1},
		Notes: contextpilot.Notes{Location: "see {label}", Top: 2, AlwaysHint: true, AfterQuestion: true, NoLocation: true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// TestProfileRoundTrip: what is written is read again, as JSON and, by those who have a YAML file, as YAML.
func TestProfileRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := eval.Profile{
			Name: rapid.SampledFrom([]string{"", "safe", "a: b"}).Draw(t, "name"), Policy: rapid.SampledFrom([]string{"", "best", "retrieval"}).Draw(t, "policy"),
			MaxDisplacement: rapid.IntRange(0, 9).Draw(t, "displacement"), Pin: rapid.IntRange(0, 9).Draw(t, "pin"),
			Hint: rapid.SampledFrom([]string{"", "auto", "full", "top-4", "displaced-only", "none"}).Draw(t, "hint"), HintAlways: rapid.Bool().Draw(t, "always"),
			HintAfterQuestion: rapid.Bool().Draw(t, "after"), Dedup: rapid.SampledFrom([]string{"", "content", "id", "off"}).Draw(t, "dedup"), NoLocation: rapid.Bool().Draw(t, "location"),
		}
		var b bytes.Buffer
		if err := p.Write(&b); err != nil {
			t.Fatal(err)
		}
		if got, err := eval.ReadProfile(bytes.NewReader(b.Bytes())); err != nil || got != p {
			t.Fatalf("%+v, want %+v (%v)", got, p, err)
		}
		var fields map[string]any
		if err := yaml.Unmarshal(b.Bytes(), &fields); err != nil {
			t.Fatalf("not YAML: %v\n%s", err, b.Bytes())
		}
	})
}

func TestReadProfileErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:                                       "EOF",
		`{"pinn":1}`:                             `unknown field "pinn"`,
		`{"pin":"1"}`:                            "pin: want int",
		`{"pin":-1}`:                             "Pin -1",
		`{"pin":1,"keep_top_at_end":1}`:          "KeepTopAtEnd 1 together",
		`{"hint":"top-0"}`:                       `hint "top-0"`,
		`{"dedup":"yes"}`:                        `dedup "yes"`,
		`{"policy":"worst"}`:                     `"worst"`,
		`{} {}`:                                  "more behind",
		`{"name":"` + strings.Repeat("x", 1<<16): "longer than",
	} {
		if p, err := eval.ReadProfile(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %+v (%v)", text, p, err)
		}
	}
}

// FuzzReadProfile: what is read can be used and is written as it was.
func FuzzReadProfile(f *testing.F) {
	f.Add([]byte(`{"name":"safe","pin":1,"hint":"top-2"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := eval.ReadProfile(bytes.NewReader(data))
		if err != nil {
			return
		}
		config, err := p.Apply(contextpilot.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := contextpilot.New(config); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := p.Write(&b); err != nil {
			t.Fatal(err)
		}
		if again, err := eval.ReadProfile(&b); err != nil || again != p {
			t.Fatalf("%+v, again %+v (%v)", p, again, err)
		}
	})
}
