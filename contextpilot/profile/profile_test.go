package profile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/contextpilot/profile"
)

func TestProfileApply(t *testing.T) {
	p := profile.Profile{
		Policy: "frequency", MaxDisplacement: 2, Pin: 1, Hint: "top-2", HintAlways: true, HintAfterQuestion: true,
		Dedup: "id", NoLocation: true,
	}
	got, err := p.Apply(contextpilot.Config{MaxScopes: 7, Notes: contextpilot.Notes{Location: "see {label}"}})
	if err != nil {
		t.Fatal(err)
	}
	want := contextpilot.Config{
		MaxScopes: 7, Policy: "frequency", Dedup: contextpilot.DedupID, Limits: contextpilot.Limits{MaxDisplacement: 2, Pin: 1},
		Notes: contextpilot.Notes{
			Hint: contextpilot.HintTop, Location: "see {label}", Top: 2, AlwaysHint: true, AfterQuestion: true, NoLocation: true,
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// TestProfileRoundTrip: what is written is read again.
func TestProfileRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := profile.Profile{
			Name: rapid.SampledFrom([]string{"", "safe", "a: b"}).Draw(t, "name"), Policy: rapid.SampledFrom([]string{
				"", "best",
				"retrieval",
			}).Draw(t, "policy"),
			MaxDisplacement: rapid.IntRange(0, 9).Draw(t, "displacement"), Pin: rapid.IntRange(0, 9).Draw(t, "pin"),
			Hint: rapid.SampledFrom([]string{"", "auto", "full", "top-4", "displaced-only", "none"}).Draw(t,
				"hint"), HintAlways: rapid.Bool().Draw(t, "always"),
			HintAfterQuestion: rapid.Bool().Draw(t, "after"), Dedup: rapid.SampledFrom([]string{"", "content", "id", "off"}).Draw(t,
				"dedup"), NoLocation: rapid.Bool().Draw(t, "location"),
		}
		var b bytes.Buffer
		if err := p.Write(&b); err != nil {
			t.Fatal(err)
		}
		if got, err := profile.Read(bytes.NewReader(b.Bytes())); err != nil || got != p {
			t.Fatalf("%+v, want %+v (%v)", got, p, err)
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
		if p, err := profile.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %+v (%v)", text, p, err)
		}
	}
}

// FuzzReadProfile: what is read can be used and is written as it was.
func FuzzReadProfile(f *testing.F) {
	f.Add([]byte(`{"name":"safe","pin":1,"hint":"top-2"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := profile.Read(bytes.NewReader(data))
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
		if again, err := profile.Read(&b); err != nil || again != p {
			t.Fatalf("%+v, again %+v (%v)", p, again, err)
		}
	})
}

// TestShippedProfiles: each is valid, bears its file's name, and makes a pilot.
func TestShippedProfiles(t *testing.T) {
	names := profile.Names()
	if !slices.Contains(names, "default") || !slices.Contains(names, "safe") {
		t.Errorf("names: %v", names)
	}
	for _, name := range names {
		p, err := profile.Load(name)
		if err != nil || p.Name != name {
			t.Errorf("%s: %+v (%v)", name, p, err)
			continue
		}
		config, err := p.Apply(contextpilot.Config{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := contextpilot.New(config); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "Safe", "../safe", "none.json"} {
		if p, err := profile.Load(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %+v (%v)", name, p, err)
		}
	}
}

// TestLoadProfileFile: a file of one's own; what is wrong with it is said.
func TestLoadProfileFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ours.json")
	if err := os.WriteFile(name, []byte(`{"name":"ours","pin":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := profile.Load(name); err != nil || p != (profile.Profile{Name: "ours", Pin: 2}) {
		t.Errorf("%+v (%v)", p, err)
	}
	if err := os.WriteFile(name, []byte(`{"pin":-2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := profile.Load(name); err == nil || !strings.Contains(err.Error(), "Pin -2") {
		t.Errorf("%+v (%v)", p, err)
	}
}

// TestSafeProfile: the block that the retriever ranks first stands last, next to the question.
func TestSafeProfile(t *testing.T) {
	p, err := profile.Load("safe")
	if err != nil {
		t.Fatal(err)
	}
	config, err := p.Apply(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	pilot, err := contextpilot.New(config)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		plan := pilot.Plan(contextpilot.Request{Blocks: []contextpilot.Block{{ID: "a", Text: "one"}, {ID: "b", Text: "two"}, {
			ID:   "c",
			Text: "three",
		}}})
		if last := plan.Items[len(plan.Items)-1]; len(plan.Items) != 3 || last.Index != 0 {
			t.Errorf("items: %+v", plan.Items)
		}
	}
}
