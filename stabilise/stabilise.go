package stabilise

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/base/lru"
	"github.com/ragpilot/ragpilot/internal/prompt/extract"
)

// Rules are what is done. The zero value does nothing.
type Rules struct {
	Tools    bool // tools keep their order in a conversation, new ones come behind
	Schemas  bool // the members of tools' definitions stand in a fixed order
	Volatile bool // lines with the time, and declared ones, leave the system text
	Memories bool // memories leave the system text
}

// RuleNames are the names that [ParseRules] knows.
var RuleNames = []string{"tools", "schemas", "volatile", "memories"}

// ParseRules returns the rules of these names.
func ParseRules(names []string) (r Rules, err error) {
	for _, name := range names {
		switch strings.TrimSpace(name) {
		case "tools":
			r.Tools = true
		case "schemas":
			r.Schemas = true
		case "volatile":
			r.Volatile = true
		case "memories":
			r.Memories = true
		default:
			return Rules{}, fmt.Errorf("stabilise: rule %q: want %s", name, strings.Join(RuleNames, ", "))
		}
	}
	return r, nil
}

// Any reports whether a rule is on.
func (r Rules) Any() bool { return r != Rules{} }

// moves reports whether texts leave the system text.
func (r Rules) moves() bool { return r.Volatile || r.Memories }

// Place is how a text is sent that has left the system text.
type Place uint8

// The places.
const (
	// PlaceAuto is PlaceSystem where the API is known to take it: for OpenAI's two APIs, and for the models of Anthropic that take a system
	// message among the others. Else, and in [Apply], it is PlaceUser.
	PlaceAuto   Place = iota
	PlaceSystem       // a system message of its own, or one of the developer if the system text has some of it
	PlaceUser         // a note in the user's message, or in one behind a tool's result
)

// PlaceNames are the names of the places, in their order.
var PlaceNames = []string{"auto", "system", "user"}

// ParsePlace returns the place of that name.
func ParsePlace(name string) (Place, error) {
	for i, n := range PlaceNames {
		if n == name {
			return Place(i), nil
		}
	}
	return 0, fmt.Errorf("stabilise: place %q: want %s", name, strings.Join(PlaceNames, ", "))
}

// Config configures a [Stabiliser].
type Config struct {
	Rules
	// Patterns are regular expressions for the rule Volatile, beside what it knows itself. A line of the system text that one matches is
	// moved as a whole.
	Patterns []string
	// Markers say where memories begin, in any letter case: "<name>" is all up to </name>, "## Name" is a section of Markdown of any level,
	// "Name:" is all up to an empty line. Each must be the first on its line. Nil: DefaultMarkers.
	Markers []string
	Place   Place
	// Memory is the upper bound in bytes of what is remembered of all tenants; 0: 16 MiB.
	Memory int64
	// Budget replaces Memory where other tables share one; nil: none do.
	Budget *budget.Budget
	// MaxTenants: 0: 64.
	MaxTenants int
}

// DefaultMarkers are where memories begin that other programs put into system texts.
var DefaultMarkers = []string{
	"<memories>", "<memory>", "<relevant_memories>", "<user_memories>", "## Memories", "## Memory", "## Relevant memories", "## User memories",
	"Memories:", "Relevant memories:", "User memories:",
}

// Conversation says whose request it is. All may be left out.
type Conversation struct {
	// Tenant parts those who share nothing.
	Tenant string
	// Name is the conversation's, or its user's: requests with the same name are of one person.
	Name string
	// Form says how documents are marked that stand in system texts.
	Form extract.Options
}

// Stats count what was done since the start, in all requests.
type Stats struct {
	Tools    int64 `json:"tools"`    // requests whose tools were put into another order
	Schemas  int64 `json:"schemas"`  // definitions of tools whose members were put into another order
	Volatile int64 `json:"volatile"` // lines that left system texts
	Memories int64 `json:"memories"` // memories that did
	// Again counts texts that were sent again in earlier turns, and Fenced messages with a text that had the form of a note.
	Again  int64 `json:"again"`
	Fenced int64 `json:"fenced"`
	// Kept counts what was left as it came because it was not certain: definitions of tools that have a member twice, lists of tools that
	// have a name twice, and lines in or behind what may be a document.
	Kept int64 `json:"kept"`
}

// Sum returns s and m together.
func (s Stats) Sum(m Stats) Stats {
	return Stats{
		Tools: s.Tools + m.Tools, Schemas: s.Schemas + m.Schemas, Volatile: s.Volatile + m.Volatile, Memories: s.Memories + m.Memories,
		Again: s.Again + m.Again, Fenced: s.Fenced + m.Fenced, Kept: s.Kept + m.Kept,
	}
}

// Stabiliser applies rules to requests. Safe for concurrent use.
type Stabiliser struct {
	cfg      Config
	patterns []*regexp.Regexp
	markers  []marker
	budget   *budget.Budget

	mu      sync.Mutex
	stats   Stats                      // guarded by mu
	tenants *lru.Cache[string, *table] // guarded by mu
}

// New returns a Stabiliser.
func New(c Config) (*Stabiliser, error) {
	s := &Stabiliser{cfg: c, budget: c.Budget}
	for i, p := range c.Patterns {
		re, err := pattern(p)
		if err != nil {
			return nil, fmt.Errorf("stabilise: Config.Patterns[%d] %q: %w", i, p, err)
		}
		s.patterns = append(s.patterns, re)
	}
	if c.Markers == nil {
		c.Markers = DefaultMarkers
	}
	for i, m := range c.Markers {
		parsed, err := parseMarker(m)
		if err != nil {
			return nil, fmt.Errorf("stabilise: Config.Markers[%d] %q: %w", i, m, err)
		}
		s.markers = append(s.markers, parsed)
	}
	if c.Place > PlaceUser {
		return nil, fmt.Errorf("stabilise: Config.Place is %d: want 0 to %d", c.Place, PlaceUser)
	}
	if c.Memory < 0 {
		return nil, errors.New("stabilise: Config.Memory is negative")
	}
	if c.Memory == 0 {
		c.Memory = 16 << 20
	}
	if s.budget == nil {
		s.budget = budget.New(c.Memory)
	}
	if c.MaxTenants <= 0 {
		c.MaxTenants = 64
	}
	s.tenants = lru.New[string, *table](c.MaxTenants)
	return s, nil
}

// CheckPattern returns what is wrong with one of [Config.Patterns].
func CheckPattern(text string) error {
	_, err := pattern(text)
	return err
}

func pattern(text string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(text)
	if err == nil && re.MatchString("") {
		err = errors.New("it matches every line")
	}
	return re, err
}

// CheckMarker returns what is wrong with one of [Config.Markers].
func CheckMarker(text string) error {
	_, err := parseMarker(text)
	return err
}

// Rules returns the rules that are on.
func (s *Stabiliser) Rules() Rules { return s.cfg.Rules }

// Stats returns what was done so far.
func (s *Stabiliser) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// count takes in what was done to a request.
func (s *Stabiliser) count(done *Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats = s.stats.Sum(*done)
}

// Forget drops what is remembered of a tenant's conversations of that name, or with an empty name all of the tenant's. It reports whether
// there was anything.
func (s *Stabiliser) Forget(tenant, name string) bool {
	s.mu.Lock()
	t, ok := s.tenants.Get(tenant)
	if ok && name == "" {
		s.tenants.Delete(tenant)
	}
	s.mu.Unlock()
	if !ok {
		return false
	}
	if name == "" {
		t.close()
		return true
	}
	return t.forget(name)
}

// table returns what is remembered of a tenant.
func (s *Stabiliser) table(tenant string) *table {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.tenants.Get(tenant); ok {
		return t
	}
	t := newTable(s.budget, tenant)
	if _, gone, full := s.tenants.Put(strings.Clone(tenant), t); full {
		gone.close()
	}
	return t
}

// sum stands for bytes.
type sum = xxh3.Uint128
