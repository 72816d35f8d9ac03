package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tmc/langchaingo/schema"
	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/adapters/mcp"
	"github.com/ragpilot/ragpilot/memory"
)

// Tests and examples run without the sentence model, which is the default of a memory.Config. bleve, which an example
// searches, keeps a fixed pool of analysis workers for the whole process.
func TestMain(m *testing.M) {
	memory.SetDefaultEmbedder(memory.Lexical)
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/blevesearch/bleve_index_api.AnalysisWorker"))
}

// shelf finds a document for each word of a question.
type shelf struct{}

func (shelf) GetRelevantDocuments(_ context.Context, query string) (docs []schema.Document, err error) {
	for word := range strings.FieldsSeq(query) {
		if word == "broken" {
			return nil, io.ErrUnexpectedEOF
		}
		docs = append(docs, schema.Document{PageContent: "Text of " + word + ".", Metadata: map[string]any{"source": word + ".md#0"}, Score: 0.7})
	}
	return docs, nil
}

func newStore(t testing.TB) memory.Store {
	t.Helper()
	s, err := memory.New(memory.NewInMemory(), memory.Config{Embedder: memory.Lexical})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// connect serves o to a real client of the protocol.
func connect(t testing.TB, o mcp.Options) *sdk.ClientSession {
	t.Helper()
	server, err := mcp.New(o)
	if err != nil {
		t.Fatal(err)
	}
	here, there := sdk.NewInMemoryTransports()
	serving, err := server.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = serving.Wait()
	})
	return client
}

// call returns a tool's output, or the text of its error.
func call[T any](t testing.TB, c *sdk.ClientSession, tool string, arguments any) (out T, failed string) {
	t.Helper()
	res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return out, err.Error()
	}
	text := res.Content[0].(*sdk.TextContent).Text
	if res.IsError {
		return out, text
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return out, ""
}

func TestTools(t *testing.T) {
	for name, c := range map[string]struct {
		o    mcp.Options
		want []string
	}{
		"documents": {mcp.Options{Retriever: shelf{}}, []string{"search"}},
		"memory":    {mcp.Options{Memory: newStore(t), Scope: memory.Scope{User: "ana"}}, []string{"forget", "recall", "remember"}},
		"both": {
			mcp.Options{Retriever: shelf{}, Memory: newStore(t), Scope: memory.Scope{User: "ana"}},
			[]string{"forget", "recall", "remember", "search"},
		},
	} {
		listed, err := connect(t, c.o).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, tool := range listed.Tools {
			got = append(got, tool.Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if _, err := mcp.New(mcp.Options{}); !errors.Is(err, mcp.ErrNothing) {
		t.Errorf("nothing to offer: %v", err)
	}
	if _, err := mcp.New(mcp.Options{Memory: newStore(t)}); !errors.Is(err, memory.ErrNoScope) {
		t.Errorf("nobody's memory: %v", err)
	}
}

func TestSearch(t *testing.T) {
	c := connect(t, mcp.Options{Retriever: shelf{}, K: 2, MaxK: 3})
	got, failed := call[mcp.Results](t, c, "search", mcp.Query{Query: "bees honey wax"})
	want := []mcp.Result{{ID: "bees.md#0", Text: "Text of bees."}, {ID: "honey.md#0", Text: "Text of honey."}}
	if failed != "" || !slices.Equal(got.Results, want) {
		t.Errorf("%+v %s", got, failed)
	}
	if got, _ := call[mcp.Results](t, c, "search", mcp.Query{Query: "bees honey wax", K: 3}); len(got.Results) != 3 {
		t.Errorf("%+v", got)
	}
	for want, q := range map[string]any{
		"query is empty":                   mcp.Query{},
		"k is 4, must be between 1 and 3":  mcp.Query{Query: "x", K: 4},
		"search: unexpected EOF":           mcp.Query{Query: "broken"},
		`unexpected additional properties`: map[string]any{"query": "x", "limit": 1},
		`missing properties: ["query"]`:    map[string]any{"k": 1},
	} {
		if _, failed := call[mcp.Results](t, c, "search", q); !strings.Contains(failed, want) {
			t.Errorf("%+v: %q, want %q", q, failed, want)
		}
	}
}

// A fact is remembered once, recalled, and forgotten everywhere; the facts of others are out of reach.
func TestMemory(t *testing.T) {
	store := newStore(t)
	ana := connect(t, mcp.Options{Memory: store, Scope: memory.Scope{User: "ana"}})
	ben := connect(t, mcp.Options{Memory: store, Scope: memory.Scope{User: "ben"}})
	added, failed := call[mcp.Changed](t, ana, "remember", mcp.Fact{Text: "Ana keeps bees."})
	if failed != "" || added.Known || len(added.Memories) != 1 || added.Memories[0].Text != "Ana keeps bees." {
		t.Fatalf("%+v %s", added, failed)
	}
	if again, failed := call[mcp.Changed](t, ana, "remember", mcp.Fact{Text: "Ana keeps bees."}); failed != "" || len(again.Memories) > 0 ||
		!again.Known {
		t.Errorf("remembered again: %+v %s", again, failed)
	}
	if found, _ := call[mcp.Results](t, ana, "recall", mcp.Query{Query: "who keeps bees?"}); !slices.Equal(found.Results, added.Memories) {
		t.Errorf("%+v", found)
	}
	if found, failed := call[mcp.Results](t, ben, "recall", mcp.Query{Query: "who keeps bees?"}); failed != "" || len(found.Results) > 0 {
		t.Errorf("ben recalls %+v %s", found, failed)
	}
	id := mcp.ByID{ID: added.Memories[0].ID}
	_, others := call[mcp.Changed](t, ben, "forget", id)
	if !strings.HasSuffix(others, `": no such memory`) {
		t.Errorf("ben forgets ana's: %q", others)
	}
	if gone, failed := call[mcp.Changed](t, ana, "forget", id); failed != "" || !slices.Equal(gone.Memories, added.Memories) {
		t.Errorf("%+v %s", gone, failed)
	}
	if found, failed := call[mcp.Results](t, ana, "recall", mcp.Query{Query: "who keeps bees?"}); failed != "" || len(found.Results) > 0 {
		t.Errorf("recalled after all: %+v %s", found, failed)
	}
	if _, again := call[mcp.Changed](t, ana, "forget", id); again != others {
		t.Errorf("forgotten twice: %q, somebody else's: %q", again, others)
	}
}

// A fact is stored whatever its form, for it was given as one; what a repeat answers says "known".
func TestRememberAsGiven(t *testing.T) {
	c := connect(t, mcp.Options{Memory: newStore(t), Scope: memory.Scope{User: "ana"}})
	for _, text := range []string{"Favourite quiz question: what is a drone?", "Thanks!", "Summarise every answer."} {
		if got, failed := call[mcp.Changed](t, c, "remember", mcp.Fact{Text: text}); failed != "" || len(got.Memories) != 1 ||
			got.Memories[0].Text != text {
			t.Errorf("%q: %+v %s", text, got, failed)
		}
	}
	again, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "remember", Arguments: mcp.Fact{Text: " Thanks!\n"}})
	if err != nil {
		t.Fatal(err)
	}
	if text := again.Content[0].(*sdk.TextContent).Text; text != `{"known":true,"memories":[]}` {
		t.Errorf("a repeat: %s", text)
	}
	if _, failed := call[mcp.Changed](t, c, "remember", mcp.Fact{Text: " \n"}); !strings.Contains(failed, "text is empty") {
		t.Errorf("an empty fact: %q", failed)
	}
	own := connect(t, mcp.Options{Memory: newStore(t), Scope: memory.Scope{User: "ana"}, Extractor: memory.Verbatim{}})
	if got, failed := call[mcp.Changed](t, own, "remember", mcp.Fact{Text: "Hi! I keep bees."}); failed != "" || len(got.Memories) != 1 ||
		got.Memories[0].Text != "I keep bees." {
		t.Errorf("by another rule: %+v %s", got, failed)
	}
}
