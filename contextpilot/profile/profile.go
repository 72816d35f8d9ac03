package profile

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/internal/base/strictjson"
)

// Profile is the part of a [contextpilot.Config] that changes what the model reads, in a form that can be written to a file, as JSON.
// `ragpilot eval` writes one by which a model was measured to answer no worse. The zero Profile is the shipped default.
type Profile struct {
	// Name is for people: "default", "safe".
	Name string `json:"name,omitempty"`
	// Policy is Config.Policy.
	Policy string `json:"policy,omitempty"`
	// MaxDisplacement, Pin and KeepTopAtEnd are those of Config.Limits.
	MaxDisplacement int `json:"max_displacement,omitempty"`
	Pin             int `json:"pin,omitempty"`
	KeepTopAtEnd    int `json:"keep_top_at_end,omitempty"`
	// Top is Config.Top: anywhere, moves, echoes or near. Empty: the default. EchoTokens is Config.EchoTokens.
	Top        string `json:"top,omitempty"`
	EchoTokens int    `json:"echo_tokens,omitempty"`
	// Hint is the form of the order note: auto, full, top-N, displaced-only or none. Empty: auto.
	Hint string `json:"hint,omitempty"`
	// HintAlways adds the order note whether it pays or not.
	HintAlways bool `json:"hint_always,omitempty"`
	// HintAfterQuestion puts the order note behind the question.
	HintAfterQuestion bool `json:"hint_after_question,omitempty"`
	// Dedup is content, id or off. Empty: content.
	Dedup string `json:"dedup,omitempty"`
	// NoLocation leaves the location notes out.
	NoLocation bool `json:"no_location,omitempty"`
}

// Read reads a profile and checks it; unknown members are errors. At most 64 KiB are read.
func Read(r io.Reader) (Profile, error) {
	const limit = 64 << 10
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return Profile{}, err
	}
	if len(data) > limit {
		return Profile{}, fmt.Errorf("profile: longer than %d bytes", limit)
	}
	var p Profile
	if err := strictjson.Decode(data, &p); err != nil {
		return Profile{}, fmt.Errorf("profile: %w", err)
	}
	c, err := p.Apply(contextpilot.Config{})
	if err == nil {
		_, err = contextpilot.New(c)
	}
	if err != nil {
		return Profile{}, fmt.Errorf("profile: %w", err)
	}
	return p, nil
}

//go:embed profiles/*.json
var profiles embed.FS

// Names lists the profiles that are shipped, docs/quality.md has what each is for.
func Names() []string {
	entries, _ := profiles.ReadDir("profiles") // embedded: it is there
	names := append(make([]string, 0, 1+len(entries)), "default")
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	return names
}

// Load returns a shipped profile by its name, or reads a file whose name ends in .json. An error names which it was to be.
func Load(name string) (Profile, error) {
	switch {
	case name == "default":
		return Profile{Name: name}, nil
	case slices.Contains(Names(), name):
		return openFile(profiles.Open(path.Join("profiles", name+".json")))
	case strings.HasSuffix(name, ".json"):
		return openFile(os.Open(name))
	}
	return Profile{}, fmt.Errorf("profile %q: want one of %v, or a file whose name ends in .json", name, Names())
}

func openFile[F fs.File](file F, err error) (Profile, error) {
	if err != nil {
		return Profile{}, fmt.Errorf("profile: %w", err)
	}
	defer file.Close()
	return Read(file)
}

// Write writes the profile as [Read] reads it.
func (p Profile) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(p)
}

// Apply returns the configuration with what the profile says; all else stays as it is. An error names the member and its
// value; whether numbers and policy make sense is for [contextpilot.New] to say.
func (p Profile) Apply(c contextpilot.Config) (contextpilot.Config, error) {
	var err error
	if c.Notes.Hint, c.Notes.Top, err = hintForm(p.Hint); err != nil {
		return c, err
	}
	switch p.Dedup {
	case "", "content":
		c.Dedup = contextpilot.DedupContent
	case "id":
		c.Dedup = contextpilot.DedupID
	case "off":
		c.Dedup = contextpilot.DedupOff
	default:
		return c, fmt.Errorf("dedup %q: want content, id or off", p.Dedup)
	}
	if c.Top, err = topOf(p.Top); err != nil {
		return c, err
	}
	c.EchoTokens = p.EchoTokens
	c.Policy, c.NewPolicy = p.Policy, nil
	c.Limits.MaxDisplacement, c.Limits.Pin, c.Limits.KeepTopAtEnd = p.MaxDisplacement, p.Pin, p.KeepTopAtEnd
	c.Notes.AlwaysHint, c.Notes.AfterQuestion, c.Notes.NoLocation = p.HintAlways, p.HintAfterQuestion, p.NoLocation
	return c, nil
}

// topOf reads Profile.Top.
func topOf(value string) (contextpilot.Top, error) {
	names := []string{"", "anywhere", "moves", "echoes", "near"}
	if i := slices.Index(names, value); i >= 0 {
		return contextpilot.Top(i), nil
	}
	return 0, fmt.Errorf("top %q: want one of %v", value, names[1:])
}

// hintForm reads Profile.Hint; top is 0 for the default number.
func hintForm(value string) (form contextpilot.Hint, top int, err error) {
	switch value {
	case "", "auto":
		return contextpilot.HintAuto, 0, nil
	case "full":
		return contextpilot.HintFull, 0, nil
	case "displaced-only":
		return contextpilot.HintDisplaced, 0, nil
	case "none":
		return contextpilot.HintNone, 0, nil
	}
	if n, ok := strings.CutPrefix(value, "top-"); ok {
		if top, err := strconv.Atoi(n); err == nil && top > 0 {
			return contextpilot.HintTop, top, nil
		}
	}
	return 0, 0, fmt.Errorf("hint %q: want auto, full, top-N, displaced-only or none", value)
}
