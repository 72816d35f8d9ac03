package adk_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	adkmemory "google.golang.org/adk/memory"
	"google.golang.org/adk/model"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/preloadmemorytool"
	"google.golang.org/genai"

	"github.com/ragpilot/ragpilot/adapters/adk"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/framework/frameworktest"
	"github.com/ragpilot/ragpilot/memory"
)

// Tests and examples run without the sentence model, which is the default of a memory.Config.
func TestMain(m *testing.M) {
	memory.SetDefaultEmbedder(memory.Lexical)
	goleak.VerifyTestMain(m)
}

// fakeLLM is a fake: it notes what it is asked and answers "yes", in pieces if asked for a stream.
type fakeLLM struct {
	asked []*model.LLMRequest
	after int // answers before err
	err   error
}

func (f *fakeLLM) Name() string { return "fake" }

func (f *fakeLLM) GenerateContent(_ context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		f.asked = append(f.asked, req)
		whole := &model.LLMResponse{
			Content:       genai.NewContentFromText("yes", genai.RoleModel),
			UsageMetadata: &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 100, CachedContentTokenCount: 40, CandidatesTokenCount: 1},
		}
		answers := []*model.LLMResponse{whole}
		if stream {
			answers = []*model.LLMResponse{{Content: genai.NewContentFromText("y", genai.RoleModel), Partial: true}, whole}
		}
		for i, a := range answers {
			if f.err != nil && i == f.after {
				yield(nil, f.err)
				return
			}
			if !yield(a, nil) {
				return
			}
		}
	}
}

// question holds a plan for the documents and returns a message with them.
func question(pilot *contextpilot.Pilot, ids string) *genai.Content {
	var blocks []contextpilot.Block
	for id := range strings.FieldsSeq(ids) {
		blocks = append(blocks, contextpilot.Block{ID: id, Text: "Text of " + id + ". " + strings.Repeat("It is long. ", 20)})
	}
	plan := pilot.Plan(contextpilot.Request{Blocks: blocks})
	plan.Session = "thread-7"
	framework.OffersOf(pilot).Offer(plan)
	return genai.NewContentFromText(plan.Context()+"\nWhat of "+ids+"?", genai.RoleUser)
}

func ask(ctx context.Context, m model.LLM, contents []*genai.Content, stream bool) (last *model.LLMResponse, err error) {
	for answer, err := range m.GenerateContent(ctx, &model.LLMRequest{Contents: contents}, stream) {
		if err != nil {
			return last, err
		}
		last = answer
	}
	return last, nil
}

// A second turn that resends the first refers to its documents, streamed or not; the caller's contents stay.
func TestLaterTurnsRefer(t *testing.T) {
	for _, stream := range []bool{false, true} {
		pilot, inner := frameworktest.Pilot(t), &fakeLLM{}
		m := adk.Model(pilot, inner, adk.ModelOptions{})
		ctx := framework.WithConversation(t.Context(), "thread-7")
		var contents []*genai.Content
		for i, ids := range []string{"a b c", "b c d", "d a e"} {
			contents = append(contents, question(pilot, ids))
			whole := contents[len(contents)-1].Parts[0].Text
			answer, err := ask(ctx, m, contents, stream)
			if err != nil {
				t.Fatal(err)
			}
			if got := contents[len(contents)-1].Parts[0].Text; got != whole {
				t.Errorf("the caller's content has changed to %q", got)
			}
			contents = append(contents, answer.Content)
			sent := inner.asked[i].Contents
			want := 1
			if i == 0 {
				want = 3
			}
			if text := sent[len(sent)-1].Parts[0].Text; strings.Count(text, "Text of") != want {
				t.Errorf("turn %d does not send %d documents in full: %s", i+1, want, text)
			}
			for j := range 2 * i {
				if got, before := sent[j].Parts[0].Text, inner.asked[i-1].Contents; j < len(before) && got != before[j].Parts[0].Text {
					t.Errorf("turn %d sends another content %d than the turn before", i+1, j)
				}
			}
		}
		if st := pilot.Stats(); framework.OffersOf(pilot).Stats().Held != 0 || st.LiveRequests != 3 || st.EventsUnknown != 0 ||
			st.PrefixReported != 120 {
			t.Errorf("stream %v: %+v", stream, st)
		}
	}
}

func TestFailuresAreTakenBack(t *testing.T) {
	for after, live := range []int64{0, 1} {
		pilot := frameworktest.Pilot(t)
		m := adk.Model(pilot, &fakeLLM{after: after, err: io.ErrUnexpectedEOF}, adk.ModelOptions{})
		ctx := framework.WithConversation(t.Context(), "thread-7")
		if _, err := ask(ctx, m, []*genai.Content{question(pilot, "a b")}, true); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%v", err)
		}
		if got := pilot.Stats().LiveRequests; got != live {
			t.Errorf("after %d answers: %d requests in the index, want %d", after, got, live)
		}
	}
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

// What was said in one session is recalled in another, by a real agent of the kit with its own memory tool; adding a session
// twice changes nothing; another user's memories are not found.
func TestMemoryOfAnAgent(t *testing.T) {
	pilot, inner, store := frameworktest.Pilot(t), &fakeLLM{}, newStore(t)
	memories := adk.Memory(pilot, store, adk.MemoryOptions{K: 5})
	sessions := session.InMemoryService()
	a, err := llmagent.New(llmagent.Config{
		Name: "helper", Model: adk.Model(pilot, inner, adk.ModelOptions{}), Tools: []tool.Tool{preloadmemorytool.New()},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: sessions, MemoryService: memories, AutoCreateSession: true})
	if err != nil {
		t.Fatal(err)
	}
	say := func(user, id, text string) {
		for _, err := range r.Run(t.Context(), user, id, genai.NewContentFromText(text, genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		got, err := sessions.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: user, SessionID: id})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := memories.AddSessionToMemory(t.Context(), got.Session); err != nil {
				t.Fatal(err)
			}
		}
	}
	say("ana", "1", "I keep bees and sell honey.")
	say("ben", "1", "I keep a parrot.")
	say("ana", "2", "What animals do I keep?")

	all, err := store.GetAll(t.Context(), memory.Scope{User: "ana"}, memory.ListOptions{})
	if err != nil || len(all) != 1 { // of a statement, a question and two answers
		t.Errorf("%d memories of ana's: %+v, %v", len(all), all, err)
	}
	config := inner.asked[len(inner.asked)-1].Config
	var said strings.Builder
	for _, p := range config.SystemInstruction.Parts {
		said.WriteString(p.Text)
	}
	if s := said.String(); !strings.Contains(s, "bees") || strings.Contains(s, "parrot") {
		t.Errorf("the agent gets: %s", s)
	}
}

// The same memories come in the same order, however the question ranks them, and say no time.
func TestMemoriesInTheCachesOrder(t *testing.T) {
	pilot, store := frameworktest.Pilot(t), newStore(t)
	memories := adk.Memory(pilot, store, adk.MemoryOptions{})
	scope := memory.Scope{User: "ana", Agent: "app", Run: "1"}
	said := []memory.Message{
		{Role: memory.User, Content: "I keep bees in the garden."},
		{Role: memory.User, Content: "My garden is in Porto."},
		{Role: memory.Assistant, Content: "Porto has mild winters."},
	}
	if _, err := store.Add(t.Context(), scope, said, memory.AddOptions{Extractor: memory.Everything{}}); err != nil {
		t.Fatal(err)
	}
	var first string
	for i, query := range []string{"bees garden Porto", "Porto winters garden bees"} {
		got, err := memories.SearchMemory(t.Context(), &adkmemory.SearchRequest{Query: query, UserID: "ana", AppName: "app"})
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, e := range got.Memories {
			texts = append(texts, e.Content.Parts[0].Text)
			if !e.Timestamp.IsZero() || (e.Content.Role == genai.RoleModel) != strings.HasPrefix(e.Content.Parts[0].Text, "Porto has") {
				t.Errorf("%+v", e)
			}
		}
		all := strings.Join(texts, "|")
		if len(texts) != 3 {
			t.Fatalf("%q finds %q", query, all)
		}
		if i == 0 {
			first = all
		} else if all != first {
			t.Errorf("%q, then %q", first, all)
		}
	}
	if _, err := memories.SearchMemory(t.Context(), &adkmemory.SearchRequest{Query: "x"}); !errors.Is(err, memory.ErrNoScope) {
		t.Errorf("without a user: %v", err)
	}
}
