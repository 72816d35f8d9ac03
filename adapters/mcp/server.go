package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/memory"
)

// Options say what the server offers. At least one of Retriever and Memory is needed.
type Options struct {
	// Retriever finds documents for the tool search; nil: there is no such tool.
	Retriever schema.Retriever
	// K is how many results a tool gives if the caller does not say; 0: 5. MaxK bounds what it may say; 0: 50.
	K, MaxK int
	// Memory is what remember, recall and forget work on; nil: there are no such tools.
	Memory memory.Store
	// Extractor decides what remember stores of a fact; nil: [memory.Everything], which stores it as it is, whatever its form.
	// memory.Reconcile(model) has it replace what it contradicts.
	Extractor memory.Extractor
	// Scope is whose memories these are. A server is one user's: a client cannot choose.
	Scope memory.Scope
	// Version of the server, as clients see it; empty: "dev".
	Version string
}

// ErrNothing: neither a retriever nor a memory is to be offered.
var ErrNothing = errors.New("mcp: Options.Retriever and Options.Memory are both nil")

// New returns a server with the tools. It is safe for concurrent sessions if retriever and memory are safe for concurrent
// use.
func New(o Options) (*sdk.Server, error) {
	if o.Retriever == nil && o.Memory == nil {
		return nil, ErrNothing
	}
	if o.K <= 0 {
		o.K = 5
	}
	if o.MaxK <= 0 {
		o.MaxK = 50
	}
	if o.Extractor == nil {
		o.Extractor = memory.Everything{}
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Memory != nil {
		if err := o.Scope.Validate(); err != nil {
			return nil, fmt.Errorf("mcp: Options.Scope: %w", err)
		}
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "ragpilot", Title: "Documents and memory", Version: o.Version}, nil)
	t := &tools{o}
	if o.Retriever != nil {
		sdk.AddTool(server, &sdk.Tool{
			Name: "search", Description: "Search the documents. Gives passages with their IDs, the most relevant first.",
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(false)},
		}, t.search)
	}
	if o.Memory != nil {
		t.addMemory(server)
	}
	return server, nil
}

func (t *tools) addMemory(server *sdk.Server) {
	sdk.AddTool(server, &sdk.Tool{
		Name: "remember", Description: "Remember a fact for later conversations: one short statement that stands by itself.",
		Annotations: &sdk.ToolAnnotations{DestructiveHint: new(false), IdempotentHint: true, OpenWorldHint: new(false)},
	}, t.remember)
	sdk.AddTool(server, &sdk.Tool{
		Name: "recall", Description: "Search what was remembered in earlier conversations. Gives facts with their IDs, the most relevant first.",
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(false)},
	}, t.recall)
	sdk.AddTool(server, &sdk.Tool{
		Name: "forget", Description: "Delete a remembered fact by the ID that recall gave, everywhere.",
		Annotations: &sdk.ToolAnnotations{DestructiveHint: new(true), OpenWorldHint: new(false)},
	}, t.forget)
}

type tools struct{ Options }

// Query is the input of search and recall.
type Query struct {
	Query string `json:"query" jsonschema:"what to look for, in plain words"`
	K     int    `json:"k,omitempty" jsonschema:"how many results at most"`
}

// Result is a document or a memory.
type Result struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Results is the output of search and recall.
type Results struct {
	Results []Result `json:"results"`
}

// count returns how many results are wanted.
func (t *tools) count(q Query) (int, error) {
	switch {
	case q.Query == "":
		return 0, errors.New("query is empty")
	case q.K < 0 || q.K > t.MaxK:
		return 0, fmt.Errorf("k is %d, must be between 1 and %d", q.K, t.MaxK)
	case q.K == 0:
		return t.K, nil
	}
	return q.K, nil
}

func (t *tools) search(ctx context.Context, _ *sdk.CallToolRequest, q Query) (*sdk.CallToolResult, Results, error) {
	k, err := t.count(q)
	if err != nil {
		return nil, Results{}, err
	}
	docs, err := t.Retriever.GetRelevantDocuments(ctx, q.Query)
	if err != nil {
		return nil, Results{}, fmt.Errorf("search: %w", err)
	}
	out := Results{Results: make([]Result, 0, min(k, len(docs)))}
	for i, d := range docs[:min(k, len(docs))] {
		out.Results = append(out.Results, Result{ID: idOf(d, i), Text: d.PageContent})
	}
	return nil, out, nil
}

// idOf returns a document's ID; one without is known by its place in the result.
func idOf(d schema.Document, place int) string {
	for _, key := range []string{"id", "source"} {
		if id, ok := d.Metadata[key].(string); ok && id != "" {
			return id
		}
	}
	return fmt.Sprint(place + 1)
}

// Fact is the input of remember.
type Fact struct {
	Text string `json:"text" jsonschema:"the fact, in one sentence"`
}

// Changed is the output of remember and forget.
type Changed struct {
	// Memories are those that were added, updated or deleted; empty if it was known already.
	Memories []Result `json:"memories"`
	// Known: the fact was remembered before, and nothing was stored.
	Known bool `json:"known,omitempty" jsonschema:"true if the fact was remembered before: nothing was stored"`
}

func (t *tools) remember(ctx context.Context, _ *sdk.CallToolRequest, f Fact) (*sdk.CallToolResult, Changed, error) {
	if strings.TrimSpace(f.Text) == "" {
		return nil, Changed{}, errors.New("text is empty")
	}
	changes, err := t.Memory.Add(ctx, t.Scope, []memory.Message{{Role: memory.User, Content: f.Text}},
		memory.AddOptions{Extractor: t.Extractor})
	if err != nil {
		return nil, Changed{}, fmt.Errorf("remember: %w", err)
	}
	out := Changed{Memories: []Result{}}
	for _, c := range changes {
		if c.Event != memory.None {
			out.Memories = append(out.Memories, Result{ID: c.ID, Text: c.Text})
		}
	}
	_, given := t.Extractor.(memory.Everything) // then there is no other reason to store nothing
	out.Known = len(out.Memories) == 0 && (given || len(changes) > 0)
	return nil, out, nil
}

func (t *tools) recall(ctx context.Context, _ *sdk.CallToolRequest, q Query) (*sdk.CallToolResult, Results, error) {
	k, err := t.count(q)
	if err != nil {
		return nil, Results{}, err
	}
	hits, err := t.Memory.Search(ctx, t.Scope, q.Query, k, memory.SearchOptions{})
	if err != nil {
		return nil, Results{}, fmt.Errorf("recall: %w", err)
	}
	out := Results{Results: make([]Result, len(hits))}
	for i, h := range hits {
		out.Results[i] = Result{ID: h.Memory.ID, Text: h.Memory.Text}
	}
	return nil, out, nil
}

// ByID is the input of forget.
type ByID struct {
	ID string `json:"id" jsonschema:"of the fact, as recall gave it"`
}

func (t *tools) forget(ctx context.Context, _ *sdk.CallToolRequest, in ByID) (*sdk.CallToolResult, Changed, error) {
	m, err := t.Memory.Get(ctx, in.ID)
	if err == nil && !t.Scope.Covers(m.Scope) {
		err = memory.ErrNotFound // another user's
	}
	if err == nil {
		err = t.Memory.Delete(ctx, in.ID, memory.DeleteOptions{})
	}
	switch {
	case errors.Is(err, memory.ErrNotFound): // in the same words, whether it is another user's or does not exist
		return nil, Changed{}, fmt.Errorf("forget %q: %w", in.ID, memory.ErrNotFound)
	case err != nil:
		return nil, Changed{}, fmt.Errorf("forget %q: %w", in.ID, err)
	}
	return nil, Changed{Memories: []Result{{ID: m.ID, Text: m.Text}}}, nil
}
