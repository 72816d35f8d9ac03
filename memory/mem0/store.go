package mem0

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ragpilot/ragpilot/memory"
)

type object = map[string]any

// named says in an error which method failed.
func named(method string, err *error) {
	if *err != nil {
		*err = fmt.Errorf("mem0: %s: %w", method, *err)
	}
}

// remembered is a memory as servers show it; unknown members are ignored.
type remembered struct {
	ID         string         `json:"id"`
	Memory     string         `json:"memory"`
	Text       string         `json:"text"` // some answers of the hosted service have it here
	Hash       string         `json:"hash"`
	User       string         `json:"user_id"`
	Agent      string         `json:"agent_id"`
	Run        string         `json:"run_id"`
	Role       string         `json:"role"`
	Actor      string         `json:"actor_id"`
	Metadata   map[string]any `json:"metadata"`
	CreatedAt  moment         `json:"created_at"`
	UpdatedAt  moment         `json:"updated_at"`
	Expiration string         `json:"expiration_date"`
	Score      float64        `json:"score"`
}

func (r *remembered) memory() memory.Memory {
	m := memory.Memory{
		ID: r.ID, Text: cmp.Or(r.Memory, r.Text), Scope: memory.Scope{User: r.User, Agent: r.Agent, Run: r.Run}, Role: r.Role, Actor: r.Actor,
		Metadata:  r.Metadata,
		CreatedAt: time.Time(r.CreatedAt), UpdatedAt: time.Time(r.UpdatedAt),
	}
	m.Hash = memory.HashOf(m.Text) // servers have hashes of their own
	if last, err := time.Parse(time.DateOnly, r.Expiration); err == nil {
		m.ExpiresAt = last.AddDate(0, 0, 1)
	}
	return m
}

// moment is a time as servers write it, with or without a zone; null and what is none are the zero time.
type moment time.Time

// UnmarshalJSON implements json.Unmarshaler.
func (m *moment) UnmarshalJSON(raw []byte) error {
	text, err := strconv.Unquote(string(raw))
	if err != nil {
		return nil //nolint:nilerr // a time that cannot be read costs no memory
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
		if t, err := time.Parse(layout, text); err == nil {
			*m = moment(t.UTC().Truncate(time.Microsecond))
			return nil
		}
	}
	return nil
}

// members adds the scope's fields.
func members(into object, s memory.Scope) object {
	for name, value := range map[string]string{"user_id": s.User, "agent_id": s.Agent, "run_id": s.Run} {
		if value != "" {
			into[name] = value
		}
	}
	return into
}

func query(s memory.Scope) url.Values {
	q := url.Values{}
	for name, value := range members(object{}, s) {
		q.Set(name, fmt.Sprint(value))
	}
	return q
}

// filter joins the scope and a filter, in the form that the server reads: Mem0's own wants the IDs beside the operators.
func (c *Client) filter(s memory.Scope, f memory.Filter) any {
	if c.opt.Dialect == SelfHosted {
		out := members(object{}, s)
		if !f.IsZero() {
			out["AND"] = []memory.Filter{f}
		}
		return out
	}
	all := make([]memory.Filter, 0, 4)
	fields := members(object{}, s)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		all = append(all, memory.Eq(name, fields[name]))
	}
	if !f.IsZero() {
		all = append(all, f)
	}
	return memory.And(all...)
}

// Add sends messages. The server extracts as it is configured, or with Everything nothing; what Verbatim keeps is found here and
// sent like that.
func (c *Client) Add(
	ctx context.Context, scope memory.Scope, messages []memory.Message, o memory.AddOptions,
) (_ []memory.Change, err error) {
	defer named("add", &err)
	if err := scope.Validate(); err != nil {
		return nil, err
	}
	in := members(object{"messages": messages, "infer": true}, scope)
	switch extractor := o.Extractor.(type) {
	case nil:
	case memory.Everything:
		in["infer"] = false
	case memory.Verbatim:
		kept, err := said(ctx, extractor, messages)
		if err != nil || len(kept) == 0 {
			return []memory.Change{}, err
		}
		in["messages"], in["infer"] = kept, false
	default:
		return nil, fmt.Errorf("%w: an extractor of type %T", ErrUnsupported, o.Extractor)
	}
	if len(o.Metadata) > 0 {
		in["metadata"] = o.Metadata
	}
	if !o.ExpiresAt.IsZero() {
		in["expiration_date"] = lastDay(o.ExpiresAt)
	}
	if o.Instructions != "" {
		in["custom_instructions"], in["prompt"] = o.Instructions, o.Instructions
	}
	var out struct {
		Results []struct {
			ID       string       `json:"id"`
			Memory   string       `json:"memory"`
			Event    memory.Event `json:"event"`
			Previous string       `json:"previous_memory"`
		} `json:"results"`
	}
	if err := c.call(ctx, http.MethodPost, c.routes.add, nil, in, &out); err != nil {
		return nil, err
	}
	changes := make([]memory.Change, len(out.Results))
	for i, r := range out.Results {
		changes[i] = memory.Change{ID: r.ID, Event: r.Event, Text: r.Memory, Old: r.Previous}
	}
	return changes, nil
}

// said returns what an extractor keeps of messages.
func said(ctx context.Context, v memory.Verbatim, messages []memory.Message) ([]memory.Message, error) {
	actions, err := v.Extract(ctx, memory.Extraction{Messages: messages})
	if err != nil {
		return nil, err
	}
	kept := make([]memory.Message, len(actions))
	for i, a := range actions {
		kept[i] = memory.Message{Role: memory.Role(a.Role), Content: a.Text, Name: a.Actor}
	}
	return kept, nil
}

// lastDay is the day on which a memory is found for the last time: Mem0 knows days only.
func lastDay(t time.Time) string { return t.UTC().Add(-time.Nanosecond).Format(time.DateOnly) }

// Search asks the server. The parts of a hit's score are unknown.
func (c *Client) Search(ctx context.Context, scope memory.Scope, text string, k int, o memory.SearchOptions) (_ []memory.Hit, err error) {
	defer named("search", &err)
	if err := scope.Validate(); err != nil {
		return nil, err
	}
	if k < 1 {
		k = memory.DefaultK
	}
	if text == "" {
		return []memory.Hit{}, nil
	}
	in := object{"query": text, "top_k": k, "filters": c.filter(scope, o.Filter)}
	if o.Threshold != 0 {
		in["threshold"] = max(o.Threshold, 0)
	}
	if o.Expired {
		in["show_expired"] = true
	}
	found, err := c.found(ctx, http.MethodPost, c.routes.search, nil, in)
	if err != nil {
		return nil, err
	}
	hits := make([]memory.Hit, len(found))
	for i := range found {
		hits[i] = memory.Hit{Memory: found[i].memory(), Score: found[i].Score}
	}
	return hits[:min(k, len(hits))], nil
}

// found reads an answer with results, which older servers gave as a bare list.
func (c *Client) found(ctx context.Context, method, path string, q url.Values, in any) ([]remembered, error) {
	var out results
	err := c.call(ctx, method, path, q, in, &out)
	return out, err
}

// GetAll asks for the scope's memories and brings them into the store's order.
func (c *Client) GetAll(ctx context.Context, scope memory.Scope, o memory.ListOptions) (_ []memory.Memory, err error) {
	defer named("get all", &err)
	if err := scope.Validate(); err != nil {
		return nil, err
	}
	if err := o.Filter.Validate(); err != nil {
		return nil, err
	}
	var found []remembered
	if c.routes.listByGet {
		q := query(scope)
		q.Set("top_k", strconv.Itoa(maxListed))
		if o.Expired {
			q.Set("show_expired", "true")
		}
		found, err = c.found(ctx, http.MethodGet, c.routes.list, q, nil)
	} else {
		found, err = c.pages(ctx, object{"filters": c.filter(scope, o.Filter), "show_expired": o.Expired})
	}
	if err != nil {
		return nil, err
	}
	out := make([]memory.Memory, 0, len(found))
	for i := range found {
		if m := found[i].memory(); o.Filter.IsZero() || o.Filter.Match(&m) {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b memory.Memory) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	if o.Limit > 0 && len(out) > o.Limit {
		out = out[:o.Limit]
	}
	return out, nil
}

// maxListed is how many memories Mem0's own server lists at most; pageSize how many the hosted service gives at once.
const (
	maxListed = 1000
	pageSize  = 100
	maxPages  = 10_000
)

// pages reads all pages of a listing.
func (c *Client) pages(ctx context.Context, in object) (all []remembered, err error) {
	for page := 1; page <= maxPages; page++ {
		var out struct {
			Next    *string `json:"next"`
			Results results `json:"results"`
		}
		q := url.Values{"page": {strconv.Itoa(page)}, "page_size": {strconv.Itoa(pageSize)}}
		if err := c.call(ctx, http.MethodPost, c.routes.list, q, in, &out); err != nil {
			return nil, err
		}
		all = append(all, out.Results...)
		if out.Next == nil {
			break
		}
	}
	return all, nil
}

func (c *Client) one(path, id string) string { return fmt.Sprintf(path, url.PathEscape(id)) }

// Get asks for one memory. Mem0's own server answers null, with status 200, for one that it has not.
func (c *Client) Get(ctx context.Context, id string) (memory.Memory, error) {
	m, err := c.oneOf(ctx, "get", http.MethodGet, id, nil)
	if err == nil && m.ID == "" {
		return memory.Memory{}, fmt.Errorf("mem0: get: memory %q: %w", id, memory.ErrNotFound)
	}
	return m, err
}

// oneOf sends in about one memory and reads what it is then.
func (c *Client) oneOf(ctx context.Context, what, method, id string, in any) (memory.Memory, error) {
	if id == "" {
		return memory.Memory{}, fmt.Errorf("mem0: %s: %w", what, memory.ErrNotFound)
	}
	var out remembered
	if err := c.call(ctx, method, c.one(c.routes.one, id), nil, in, &out); err != nil {
		return memory.Memory{}, fmt.Errorf("mem0: %s: %w", what, err)
	}
	return out.memory(), nil
}

// Update changes a memory, and asks for it where the server does not say what it is then.
func (c *Client) Update(ctx context.Context, id string, u memory.Update) (memory.Memory, error) {
	in := object{}
	if u.Text != nil {
		in["text"] = *u.Text
	}
	if u.Metadata != nil {
		in["metadata"] = u.Metadata
	}
	if u.ExpiresAt != nil {
		in["expiration_date"] = nil
		if !u.ExpiresAt.IsZero() {
			in["expiration_date"] = lastDay(*u.ExpiresAt)
		}
	}
	if len(in) == 0 {
		return c.Get(ctx, id)
	}
	m, err := c.oneOf(ctx, "update", http.MethodPut, id, in)
	if err == nil && m.ID == "" {
		return c.Get(ctx, id)
	}
	return m, err
}

// Delete removes a memory. Whether its history keeps the text is the server's decision: opts must be the zero value.
func (c *Client) Delete(ctx context.Context, id string, opts memory.DeleteOptions) (err error) {
	defer named("delete", &err)
	if opts.KeepHistory {
		return fmt.Errorf("%w: KeepHistory", ErrUnsupported)
	}
	if id == "" {
		return memory.ErrNotFound
	}
	return c.call(ctx, http.MethodDelete, c.one(c.routes.one, id), nil, nil, nil)
}

// DeleteAll removes the memories of a scope, which it counts before.
func (c *Client) DeleteAll(ctx context.Context, scope memory.Scope, opts memory.DeleteOptions) (int, error) {
	if opts.KeepHistory {
		return 0, fmt.Errorf("mem0: delete all: %w: KeepHistory", ErrUnsupported)
	}
	all, err := c.GetAll(ctx, scope, memory.ListOptions{Expired: true})
	if err != nil {
		return 0, err
	}
	if err := c.call(ctx, http.MethodDelete, c.routes.all, query(scope), nil, nil); err != nil {
		return 0, fmt.Errorf("mem0: delete all: %w", err)
	}
	return len(all), nil
}

// History asks for the revisions of a memory.
func (c *Client) History(ctx context.Context, id string) (_ []memory.Revision, err error) {
	defer named("history", &err)
	if id == "" {
		return nil, memory.ErrNotFound
	}
	var rows []struct {
		ID       string       `json:"id"`
		MemoryID string       `json:"memory_id"`
		Old      string       `json:"old_memory"`
		New      string       `json:"new_memory"`
		Event    memory.Event `json:"event"`
		At       moment       `json:"created_at"`
		Actor    string       `json:"actor_id"`
		Role     string       `json:"role"`
	}
	if err := c.call(ctx, http.MethodGet, c.one(c.routes.history, id), nil, nil, &rows); err != nil {
		return nil, err
	}
	if len(rows) == 0 { // Mem0's own server does not say that there never was one
		return nil, fmt.Errorf("memory %q: %w", id, memory.ErrNotFound)
	}
	out := make([]memory.Revision, len(rows))
	for i, r := range rows {
		out[i] = memory.Revision{
			ID: r.ID, MemoryID: r.MemoryID, Event: r.Event, Old: r.Old, New: r.New, At: time.Time(r.At), Actor: r.Actor,
			Role: r.Role,
		}
	}
	return out, nil
}

// Reset removes everything; the hosted dialects cannot.
func (c *Client) Reset(ctx context.Context) (err error) {
	defer named("reset", &err)
	if c.opt.Dialect != SelfHosted {
		return fmt.Errorf("%w: %s", ErrUnsupported, c.opt.Dialect)
	}
	return c.call(ctx, http.MethodPost, "/reset", nil, nil, nil)
}

// results are memories in an object's member "results", or as a bare list.
type results []remembered

// UnmarshalJSON implements json.Unmarshaler.
func (r *results) UnmarshalJSON(raw []byte) error {
	var list []remembered
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		var in struct {
			Results []remembered `json:"results"`
		}
		err := json.Unmarshal(raw, &in)
		*r = in.Results
		return err
	}
	err := json.Unmarshal(raw, &list)
	*r = list
	return err
}
