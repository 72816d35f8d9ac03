package memoryapi

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/ragpilot/ragpilot/memory"
)

type object = map[string]any

// done answers an action whose only result is that it was done.
func done(message string, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return object{"message": message}, nil
}

// shown answers with one memory.
func shown(m memory.Memory, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return viewOf(&m), nil
}

// distinct returns the first n views, each memory once; 0: all.
func distinct(views []view, n int) []view {
	out, seen := []view{}, map[string]bool{}
	for _, v := range views {
		if !seen[v.ID] && (n == 0 || len(out) < n) {
			seen[v.ID] = true
			out = append(out, v)
		}
	}
	return out
}

func ping(memory.Store, *http.Request) (any, error) {
	return object{"status": "ok", "org_id": "ragpilot", "project_id": "default", "user_email": nil}, nil
}

func add(s memory.Store, r *http.Request) (any, error) {
	var in struct {
		ids
		Messages     messages       `json:"messages"`
		Filters      memory.Filter  `json:"filters"`
		Metadata     map[string]any `json:"metadata"`
		Infer        *bool          `json:"infer"`
		Prompt       string         `json:"prompt"`
		Instructions string         `json:"custom_instructions"`
		Expiration   string         `json:"expiration_date"`
		Type         string         `json:"memory_type"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	if in.Type != "" {
		return nil, badRequest("memory_type %q is not kept here", in.Type)
	}
	if len(in.Messages) == 0 {
		return nil, badRequest("messages is empty")
	}
	opts := memory.AddOptions{Metadata: in.Metadata, Instructions: cmp.Or(in.Instructions, in.Prompt)}
	if in.Infer != nil && !*in.Infer {
		opts.Extractor = memory.Everything{}
	}
	var err error
	if opts.ExpiresAt, err = expiry(in.Expiration); err != nil {
		return nil, err
	}
	changes, err := s.Add(r.Context(), scopeOf(in.ids, &in.Filters), in.Messages, opts)
	if err != nil {
		return nil, err
	}
	results := make([]object, 0, len(changes))
	for _, c := range changes {
		if c.Event == memory.None {
			continue
		}
		one := object{"id": c.ID, "memory": c.Text, "event": c.Event}
		if c.Event == memory.Updated {
			one["previous_memory"] = c.Old
		}
		results = append(results, one)
	}
	return object{"results": results}, nil
}

// selection is what a listing and a search have in common.
type selection struct {
	ids
	Filters memory.Filter `json:"filters"`
	TopK    int           `json:"top_k"`
	Limit   int           `json:"limit"`
	Expired bool          `json:"show_expired"`
}

const maxK = 1000

// count returns how many results are wanted; 0: the client does not say.
func (s *selection) count() (int, error) {
	k := cmp.Or(s.TopK, s.Limit)
	if k < 0 || k > maxK {
		return 0, badRequest("top_k is %d, must be between 1 and %d", k, maxK)
	}
	return k, nil
}

func search(s memory.Store, r *http.Request) (any, error) {
	var in struct {
		selection
		Query     string   `json:"query"`
		Threshold *float64 `json:"threshold"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	if in.Query == "" {
		return nil, badRequest("query is empty")
	}
	k, err := in.count()
	if err != nil {
		return nil, err
	}
	k = cmp.Or(k, memory.DefaultK)
	about, err := scopes(in.ids, &in.Filters)
	if err != nil {
		return nil, err
	}
	opts := memory.SearchOptions{Filter: in.Filters, Expired: in.Expired}
	if in.Threshold != nil {
		if opts.Threshold = *in.Threshold; opts.Threshold == 0 {
			opts.Threshold = -1
		}
	}
	var hits []memory.Hit
	for _, scope := range about {
		found, err := s.Search(r.Context(), scope, in.Query, k, opts)
		if err != nil {
			return nil, err
		}
		hits = append(hits, found...)
	}
	if len(about) > 1 {
		slices.SortStableFunc(hits, func(a, b memory.Hit) int { return cmp.Compare(b.Score, a.Score) })
	}
	results := make([]view, len(hits))
	for i, h := range hits {
		results[i] = viewOf(&h.Memory)
		results[i].Score = &h.Score
	}
	return object{"results": distinct(results, k)}, nil
}

// list answers with a page of the memories, the newest first, as the hosted service does.
func list(s memory.Store, r *http.Request) (any, error) {
	var in selection
	if err := read(r, &in); err != nil {
		return nil, err
	}
	page, size, err := paging(r.URL.Query())
	if err != nil {
		return nil, err
	}
	all, err := listed(s, r, &in)
	if err != nil {
		return nil, err
	}
	slices.Reverse(all)
	answer := object{"count": len(all), "next": nil, "previous": nil}
	if size > 0 {
		from := min((page-1)*size, len(all))
		to := min(from+size, len(all))
		if to < len(all) {
			answer["next"] = other(r.URL, page+1)
		}
		if page > 1 {
			answer["previous"] = other(r.URL, page-1)
		}
		all = all[from:to]
	}
	answer["results"] = all
	return answer, nil
}

// listByQuery answers with the memories of the IDs in the query, the oldest first.
func listByQuery(s memory.Store, r *http.Request) (any, error) {
	q := r.URL.Query()
	in := selection{ids: idsOf(q), Expired: q.Get("show_expired") == "true"}
	var err error
	for name, into := range map[string]*int{"top_k": &in.TopK, "limit": &in.Limit} {
		if text := q.Get(name); text != "" {
			if *into, err = strconv.Atoi(text); err != nil {
				return nil, badRequest("%s %q is not a number", name, text)
			}
		}
	}
	all, err := listed(s, r, &in)
	if err != nil {
		return nil, err
	}
	return object{"results": all}, nil
}

func listed(s memory.Store, r *http.Request, in *selection) ([]view, error) {
	k, err := in.count()
	if err != nil {
		return nil, err
	}
	about, err := scopes(in.ids, &in.Filters)
	if err != nil {
		return nil, err
	}
	var all []view
	for _, scope := range about {
		found, err := s.GetAll(r.Context(), scope, memory.ListOptions{Filter: in.Filters, Limit: k, Expired: in.Expired})
		if err != nil {
			return nil, err
		}
		for i := range found {
			all = append(all, viewOf(&found[i]))
		}
	}
	return distinct(all, 0), nil
}

// paging reads page and page_size; a size of 0 means all.
func paging(q url.Values) (page, size int, err error) {
	page = 1
	for name, into := range map[string]*int{"page": &page, "page_size": &size} {
		text := q.Get(name)
		if text == "" {
			continue
		}
		if *into, err = strconv.Atoi(text); err != nil || *into < 1 || *into > 1_000_000 {
			return 0, 0, badRequest("%s %q: want a number from 1", name, text)
		}
	}
	return page, size, nil
}

// other returns the address of another page of the same list.
func other(u *url.URL, page int) string {
	q := u.Query()
	q.Set("page", strconv.Itoa(page))
	return u.Path + "?" + q.Encode()
}

func get(s memory.Store, r *http.Request) (any, error) {
	return shown(s.Get(r.Context(), r.PathValue("id")))
}

// change is what a client wants of a memory. A member that is null differs from one that is missing.
type change struct {
	Text       *string         `json:"text"`
	Metadata   map[string]any  `json:"metadata"`
	Expiration json.RawMessage `json:"expiration_date"`
}

func (c *change) update() (out memory.Update, err error) {
	out = memory.Update{Text: c.Text, Metadata: c.Metadata}
	if c.Expiration == nil {
		if c.Text == nil && c.Metadata == nil {
			return out, badRequest("one of text, metadata and expiration_date is needed")
		}
		return out, nil
	}
	var date *string
	if err := json.Unmarshal(c.Expiration, &date); err != nil {
		return out, badRequest("expiration_date: want YYYY-MM-DD or null")
	}
	if date == nil {
		date = new("")
	}
	at, err := expiry(*date)
	out.ExpiresAt = &at
	return out, err
}

func update(s memory.Store, r *http.Request) (any, error) {
	var in change
	if err := read(r, &in); err != nil {
		return nil, err
	}
	u, err := in.update()
	if err != nil {
		return nil, err
	}
	return shown(s.Update(r.Context(), r.PathValue("id"), u))
}

func remove(s memory.Store, r *http.Request) (any, error) {
	return done("Memory deleted successfully!", s.Delete(r.Context(), r.PathValue("id"), memory.DeleteOptions{}))
}

func deleteAll(s memory.Store, r *http.Request) (any, error) {
	_, err := s.DeleteAll(r.Context(), idsOf(r.URL.Query()).scope(), memory.DeleteOptions{})
	return done("Memories deleted successfully!", err)
}

func history(s memory.Store, r *http.Request) (any, error) {
	rows, err := s.History(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	out := make([]revision, len(rows))
	for i, row := range rows {
		out[i] = revisionOf(row)
	}
	return out, nil
}

func reset(s memory.Store, r *http.Request) (any, error) {
	return done("All memories reset", s.Reset(r.Context()))
}

// maxBatch is what the hosted service takes at once.
const maxBatch = 1000

// batchItem names a memory, and what is to be changed of it.
type batchItem struct {
	ID string `json:"memory_id"`
	change
}

// batch does something with each memory that a request lists. Before that, check looks at all of them.
func batch(r *http.Request, what string, check func(*batchItem) error, do func(*batchItem) error) (any, error) {
	var in struct {
		Memories []batchItem `json:"memories"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	if n := len(in.Memories); n == 0 || n > maxBatch {
		return nil, badRequest("memories has %d elements, must have between 1 and %d", n, maxBatch)
	}
	for i := range in.Memories {
		if err := check(&in.Memories[i]); err != nil {
			return nil, fmt.Errorf("memories[%d]: %w", i, err)
		}
	}
	for i := range in.Memories {
		if err := do(&in.Memories[i]); err != nil {
			return nil, fmt.Errorf("memories[%d], after %d were %s: %w", i, i, what, err)
		}
	}
	return done(fmt.Sprintf("Successfully %s %d memories", what, len(in.Memories)), nil)
}

func batchUpdate(s memory.Store, r *http.Request) (any, error) {
	return batch(r, "updated", func(m *batchItem) error {
		_, err := m.update()
		return err
	}, func(m *batchItem) error {
		u, _ := m.update()
		_, err := s.Update(r.Context(), m.ID, u)
		return err
	})
}

func batchDelete(s memory.Store, r *http.Request) (any, error) {
	return batch(r, "deleted", func(*batchItem) error { return nil }, func(m *batchItem) error {
		return s.Delete(r.Context(), m.ID, memory.DeleteOptions{})
	})
}

// entities lists whose memories there are. It reads all of the store.
func entities(s memory.Store, r *http.Request) (any, error) {
	porter, ok := s.(memory.Porter)
	if !ok {
		return nil, &refusal{http.StatusNotImplemented, "This store cannot list its entities"}
	}
	var all bytes.Buffer
	if err := porter.Export(r.Context(), memory.Scope{}, &all); err != nil {
		return nil, err
	}
	type key struct{ kind, name string }
	count := map[key]int{}
	lines := bufio.NewScanner(&all)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var line struct {
			Memory *memory.Memory `json:"memory"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Memory == nil {
			continue
		}
		s := line.Memory.Scope
		for _, k := range []key{{"user", s.User}, {"agent", s.Agent}, {"run", s.Run}} {
			if k.name != "" {
				count[k]++
			}
		}
	}
	results := make([]object, 0, len(count))
	for k, n := range count {
		results = append(results, object{"id": k.kind + ":" + k.name, "type": k.kind, "name": k.name, "total_memories": n})
	}
	slices.SortFunc(results, func(a, b object) int { return cmp.Compare(a["id"].(string), b["id"].(string)) })
	return object{"count": len(results), "results": results}, lines.Err()
}

func deleteEntity(s memory.Store, r *http.Request) (any, error) {
	var scope memory.Scope
	switch kind, name := r.PathValue("type"), r.PathValue("name"); kind {
	case "user":
		scope.User = name
	case "agent":
		scope.Agent = name
	case "run":
		scope.Run = name
	default:
		return nil, badRequest("entities of type %q are not kept here: want user, agent or run", kind)
	}
	_, err := s.DeleteAll(r.Context(), scope, memory.DeleteOptions{})
	return done("Entity deleted successfully!", err)
}

func (a *API) configuration(memory.Store, *http.Request) (any, error) {
	return object{"version": "v1.1", "extraction": a.opt.Extraction}, nil
}
