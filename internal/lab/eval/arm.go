package eval

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot/profile"
)

// Arm is one way to lay out the same rows.
type Arm struct {
	// Name is what tables call it.
	Name string `json:"name"`
	// Profile is what its pilot is configured with.
	Profile profile.Profile `json:"profile"`
	// Shuffle, if not 0, sends each row's blocks in the random order that follows from the seed, the row and this number, in place
	// of the profile's policy.
	Shuffle int `json:"shuffle,omitempty"`
	// Place, if not nil, is where the block with the answer is put, in place of the profile's policy.
	Place *Place `json:"place,omitempty"`
	// Reuse, if not nil, has an engine take blocks from where it computed them before, in the retriever's order.
	Reuse *Reuse `json:"reuse,omitempty"`
	// Cells, if not "", sends the blocks as the cells of a table's row, in an order of [CellOrders], in place of the profile's policy.
	Cells string `json:"cells,omitempty"`
}

// Reuse are settings of the local engine: see its Config.
type Reuse struct {
	Mode      string  `json:"reuse"`
	Recompute float64 `json:"recompute"`
	Selector  string  `json:"selector"`
}

// probes reports whether the arm is about the model, and no way to send prompts.
func (a *Arm) probes() bool { return a.Shuffle != 0 || a.Place != nil }

// members are those of a request.
func (r Reuse) members() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	data, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		panic(err) // texts and a number
	}
	if r.Mode == "hybrid" { // what other arms have sent is not there
		all["cache_salt"] = json.RawMessage(`"hybrid"`)
	}
	return all
}

// Names of arms that have a part in reports.
const (
	Plain   = "plain"   // retrieval order, all blocks in full, no notes: what every other arm is compared with
	Default = "default" // what contextpilot.Config{} does
)

// DefaultArms are the arms of a run without a choice of its own.
var DefaultArms = []string{Plain, "order", "hint-before", "hint-after", Default}

// ArmNames describes all names that [ParseArm] knows. Those from blocks-N on have the local engine reuse blocks, and compute N % of their
// tokens again.
const ArmNames = "plain, order, hint-before, hint-after, hint-always, default, pin-N, displace-N, top-at-end-N, echo-N, near-N, " +
	"blocks-N, hybrid-N, attention-N, epic-N, cacheblend-N, kvshare-N, random-N, ideal-N, ranked-N, none-N"

// fixed are the arms without a number. All but the default one send every block in full. Those of the order note are about the order that
// reuses most.
var fixed = map[string]profile.Profile{
	Plain:         {Policy: "retrieval", Hint: "none", Dedup: "off"},
	"order":       {Top: "anywhere", Hint: "none", Dedup: "off"},
	"hint-before": {Top: "anywhere", Dedup: "off"},
	"hint-after":  {Top: "anywhere", Dedup: "off", HintAfterQuestion: true},
	"hint-always": {Top: "anywhere", Dedup: "off", HintAlways: true},
	Default:       {},
}

// ParseArm returns the arm of a name. Those with a number are the default with a limit on how far blocks may move, or on the length of
// echoes.
func ParseArm(name string) (Arm, error) {
	if p, ok := fixed[name]; ok {
		p.Name = name
		return Arm{Name: name, Profile: p}, nil
	}
	for prefix, set := range map[string]func(*profile.Profile, int){
		"pin-":        func(p *profile.Profile, n int) { p.Pin = n },
		"displace-":   func(p *profile.Profile, n int) { p.MaxDisplacement = n },
		"top-at-end-": func(p *profile.Profile, n int) { p.KeepTopAtEnd = n },
		"echo-":       func(p *profile.Profile, n int) { p.Top, p.EchoTokens, p.Hint = "echoes", n, "none" },
		"near-":       func(p *profile.Profile, n int) { p.Top, p.EchoTokens, p.Hint = "near", n, "none" },
	} {
		if digits, ok := strings.CutPrefix(name, prefix); ok {
			if n, err := strconv.Atoi(digits); err == nil && n > 0 && strconv.Itoa(n) == digits {
				p := profile.Profile{Name: name}
				set(&p, n)
				return Arm{Name: name, Profile: p}, nil
			}
		}
	}
	if arm, ok := parseReuse(name); ok {
		return arm, nil
	}
	return Arm{}, fmt.Errorf("%q: want %s", name, ArmNames)
}

// parseReuse returns the arm of a name of a selector, or a mode, and a number of percent.
func parseReuse(name string) (Arm, bool) {
	kind, digits, _ := strings.Cut(name, "-")
	percent, err := strconv.Atoi(digits)
	if err != nil || percent < 0 || percent > 100 || strconv.Itoa(percent) != digits {
		return Arm{}, false
	}
	r := &Reuse{Mode: "blocks", Recompute: float64(percent) / 100, Selector: "prophet"}
	switch kind {
	case "blocks":
	case "hybrid":
		r.Mode = kind
	case "attention", "epic", "cacheblend", "kvshare", "random", "ideal", "none", "ranked":
		r.Selector = kind
	default:
		return Arm{}, false
	}
	p := fixed[Plain]
	p.Name = name
	return Arm{Name: name, Profile: p, Reuse: r}, true
}

// Permutations are n arms that send every row in a random order of its own: the model's own sensitivity to order.
func Permutations(n int) []Arm {
	arms := make([]Arm, 0, n)
	for i := range n {
		p := fixed[Plain]
		p.Name = fmt.Sprintf("%s%d", permute, i+1)
		arms = append(arms, Arm{Name: p.Name, Profile: p, Shuffle: i + 1})
	}
	return arms
}

const permute = "permute-"

// CheckArms wants names that differ, and the plain arm in front, or an arm about cells alone.
func CheckArms(arms []Arm) error {
	if len(arms) == 1 && arms[0].Cells != "" {
		return nil
	}
	if len(arms) < 2 || arms[0].Name != Plain {
		return fmt.Errorf("arms: want %s and at least one other", Plain)
	}
	for i, a := range arms {
		if a.Name == "" {
			return fmt.Errorf(`arms[%d] "": want a name`, i)
		}
		if first := slices.IndexFunc(arms, func(x Arm) bool { return x.Name == a.Name }); first < i {
			return fmt.Errorf("arms[%d] %q: a second time", i, a.Name)
		}
	}
	return nil
}
