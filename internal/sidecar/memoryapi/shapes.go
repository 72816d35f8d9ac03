package memoryapi

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/memory"
)

// ids are whom a request is about.
type ids struct {
	User  string `json:"user_id"`
	Agent string `json:"agent_id"`
	Run   string `json:"run_id"`
}

func idsOf(q url.Values) ids {
	return ids{User: q.Get("user_id"), Agent: q.Get("agent_id"), Run: q.Get("run_id")}
}

func (i ids) scope() memory.Scope { return memory.Scope{User: i.User, Agent: i.Agent, Run: i.Run} }

// view is a memory as Mem0 shows it.
type view struct {
	ID         string         `json:"id"`
	Memory     string         `json:"memory"`
	Hash       string         `json:"hash"`
	User       string         `json:"user_id,omitempty"`
	Agent      string         `json:"agent_id,omitempty"`
	Run        string         `json:"run_id,omitempty"`
	Role       string         `json:"role,omitempty"`
	Actor      string         `json:"actor_id,omitempty"`
	Metadata   map[string]any `json:"metadata"`
	CreatedAt  time.Time      `json:"created_at"`
	UpdatedAt  time.Time      `json:"updated_at"`
	Expiration *string        `json:"expiration_date"`
	Score      *float64       `json:"score,omitempty"`
}

func viewOf(m *memory.Memory) view {
	v := view{
		ID: m.ID, Memory: m.Text, Hash: m.Hash, User: m.Scope.User, Agent: m.Scope.Agent, Run: m.Scope.Run, Role: m.Role, Actor: m.Actor,
		Metadata: m.Metadata, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt,
	}
	if !m.ExpiresAt.IsZero() {
		v.Expiration = new(m.ExpiresAt.Add(-day).UTC().Format(time.DateOnly))
	}
	return v
}

// day is how long a memory lives on its last day.
const day = 24 * time.Hour

// expiry reads the last day of a memory; empty: it has none.
func expiry(date string) (time.Time, error) {
	if date == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return time.Time{}, badRequest("expiration_date %q: want YYYY-MM-DD", date)
	}
	return t.Add(day), nil
}

// revision is a row of a history as Mem0 shows it.
type revision struct {
	ID        string    `json:"id"`
	MemoryID  string    `json:"memory_id"`
	Old       *string   `json:"old_memory"`
	New       *string   `json:"new_memory"`
	Event     string    `json:"event"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	IsDeleted bool      `json:"is_deleted"`
	Actor     string    `json:"actor_id,omitempty"`
	Role      string    `json:"role,omitempty"`
}

func revisionOf(r memory.Revision) revision {
	out := revision{
		ID: r.ID, MemoryID: r.MemoryID, Event: string(r.Event), CreatedAt: r.At, UpdatedAt: r.At, IsDeleted: r.Event == memory.Deleted,
		Actor: r.Actor, Role: r.Role,
	}
	if r.Old != "" {
		out.Old = &r.Old
	}
	if r.New != "" {
		out.New = &r.New
	}
	return out
}

// messages are a list of them, one, or a text, which is a user's message.
type messages []memory.Message

// UnmarshalJSON implements json.Unmarshaler.
func (m *messages) UnmarshalJSON(raw []byte) error {
	switch first := strings.TrimSpace(string(raw)); {
	case strings.HasPrefix(first, `"`):
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
		*m = messages{{Role: memory.User, Content: text}}
		return nil
	case strings.HasPrefix(first, "{"):
		raw = append(append([]byte{'['}, raw...), ']')
	}
	var list []struct {
		Role    memory.Role `json:"role"`
		Content content     `json:"content"`
		Name    string      `json:"name"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	*m = make(messages, len(list))
	for i, one := range list {
		(*m)[i] = memory.Message{Role: one.Role, Content: string(one.Content), Name: one.Name}
	}
	return nil
}

// content is a text, or the texts of a list of parts.
type content string

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*c = content(text)
		return nil
	}
	var parts []struct{ Text string }
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	texts := make([]string, 0, len(parts))
	for _, p := range parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	*c = content(strings.Join(texts, "\n"))
	return nil
}

// scopeOf returns whose memories a filter can select at most: the IDs that it demands itself or in one of the filters
// that it joins by AND. top are those that stand beside the filter, as older clients send them.
func scopeOf(top ids, f *memory.Filter) memory.Scope {
	scope := top.scope()
	take := func(s memory.Scope) {
		scope = memory.Scope{User: cmp.Or(scope.User, s.User), Agent: cmp.Or(scope.Agent, s.Agent), Run: cmp.Or(scope.Run, s.Run)}
	}
	switch f.Op {
	case memory.OpEq:
		text, _ := f.Value.(string)
		switch f.Field {
		case "user_id":
			take(memory.Scope{User: text})
		case "agent_id":
			take(memory.Scope{Agent: text})
		case "run_id":
			take(memory.Scope{Run: text})
		}
	case memory.OpAnd:
		for i := range f.Of {
			take(scopeOf(ids{}, &f.Of[i]))
		}
	}
	return scope
}

// scopes returns the scopes that a search or a listing is about: one, or with a filter that is an OR at its top one for
// each of its branches.
func scopes(top ids, f *memory.Filter) ([]memory.Scope, error) {
	one := scopeOf(top, f)
	if one.Validate() == nil || f.Op != memory.OpOr || len(f.Of) == 0 {
		return []memory.Scope{one}, one.Validate()
	}
	out := make([]memory.Scope, len(f.Of))
	for i := range f.Of {
		out[i] = scopeOf(top, &f.Of[i])
		if err := out[i].Validate(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
