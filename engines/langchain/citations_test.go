package langchain_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/schema"
	"pgregory.net/rapid"

	"github.com/ragpilot/ragpilot/citation"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/internal/prompt/markup"
	"github.com/ragpilot/ragpilot/retriever"
	"github.com/ragpilot/ragpilot/retriever/passage"
)

// fakeCiter is a fake model that cites every label that it is shown or referred to in the last message, once each, in
// pieces of a few bytes.
type fakeCiter struct {
	piece  int
	labels []string // of the last answer
	shown  map[string]string
}

var referred = regexp.MustCompile(`(?m)^Please refer to \[(\S+)\] in the previous conversation\.$`)

func (f *fakeCiter) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, f, prompt, options...)
}

func (f *fakeCiter) GenerateContent(ctx context.Context, messages []llms.MessageContent,
	options ...llms.CallOption,
) (*llms.ContentResponse, error) {
	f.labels, f.shown = nil, map[string]string{}
	for i, m := range messages {
		for r := range markup.Regions(textOf(m)) {
			if f.shown[r.Label] = r.Text; i == len(messages)-1 {
				f.labels = append(f.labels, r.Label)
			}
		}
	}
	for _, l := range referred.FindAllStringSubmatch(textOf(messages[len(messages)-1]), -1) {
		f.labels = append(f.labels, l[1])
	}
	text := "What is asked?"
	if len(f.labels) > 0 {
		text = "Some [sic] answer [" + strings.Join(f.labels, "], or [") + "]."
	}
	var o llms.CallOptions
	for _, set := range options {
		set(&o)
	}
	for rest := text; o.StreamingFunc != nil && rest != ""; {
		n := min(f.piece, len(rest))
		if err := o.StreamingFunc(ctx, []byte(rest[:n])); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	return answer(text, nil), nil
}

// store is a fake retriever that finds what it is given.
type store struct{ docs []schema.Document }

func (s *store) GetRelevantDocuments(context.Context, string) ([]schema.Document, error) {
	return s.docs, nil
}

func drawDocuments(t *rapid.T) (docs []schema.Document) {
	for i := range rapid.IntRange(1, 6).Draw(t, "documents") {
		text := fmt.Sprint("Text ", rapid.IntRange(0, 7).Draw(t, "text"), ".")
		d := schema.Document{PageContent: text, Metadata: map[string]any{"url": fmt.Sprint("http://example.com/", i)}}
		if id := rapid.SampledFrom([]string{
			"", "a", "b", "a,b", "guide.md#3", "with space", "<doc b>", "日本",
			strings.Repeat("long", 30),
		}).Draw(t, "id"); id != "" {
			d.Metadata["id"] = id
		}
		docs = append(docs, d)
	}
	return docs
}

// Through the chains, each label that the model cites leads to one original document: the one whose text the model
// was shown under it, at its rank in the retriever's result.
func TestCitationsThroughChains(t *testing.T) {
	for _, chain := range []string{"RetrievalQA", "ConversationalRetrievalQA"} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %t", chain, stream), func(t *testing.T) {
				checks, total := 0, 0 // fewer checks with -short
				rapid.Check(t, func(t *rapid.T) {
					checks++
					total += citeThroughChain(t, chain, stream)
				})
				if total < 3*checks {
					t.Errorf("only %d citations in %d checks", total, checks)
				}
			})
		}
	}
}

func citeThroughChain(t *rapid.T, name string, stream bool) (total int) {
	inner, found := &fakeCiter{piece: rapid.IntRange(1, 9).Draw(t, "piece")}, &store{}
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var cited []citation.Citation
	llm := langchain.Wrap(pilot, inner, langchain.WithCitations(func(_ context.Context, c citation.Citation) { cited = append(cited, c) }))
	documents := retriever.Wrap(pilot, found, retriever.WithBudget(rapid.SampledFrom([]int{0, 0, 6}).Draw(t, "budget")))
	var chain chains.Chain
	question := "query"
	if name == "RetrievalQA" {
		qa := chains.NewRetrievalQAFromLLM(llm, documents)
		qa.ReturnSourceDocuments = true
		chain = qa
	} else {
		qa := chains.NewConversationalRetrievalQAFromLLM(llm, documents, memory.NewConversationBuffer(memory.WithOutputKey("text")))
		qa.ReturnSourceDocuments = true
		chain, question = qa, "question"
	}
	var options []chains.ChainCallOption
	var streamed strings.Builder
	if stream {
		options = append(options, chains.WithStreamingFunc(func(_ context.Context, chunk []byte) error {
			streamed.Write(chunk)
			return nil
		}))
	}
	ctx := in(rapid.SampledFrom([]string{"", "thread"}).Draw(t, "session"))
	for range rapid.IntRange(1, 4).Draw(t, "turns") {
		cited = nil
		streamed.Reset()
		found.docs = drawDocuments(t)
		out, err := chains.Call(ctx, chain, map[string]any{question: "Why?"}, options...)
		if err != nil {
			t.Fatal(err)
		}
		text := out["text"].(string)
		if stream && !strings.HasSuffix(streamed.String(), text) {
			t.Fatalf("streamed %q of %q", streamed.String(), text)
		}
		var labels []string
		for _, c := range cited {
			labels = append(labels, c.Label)
			if text[c.Start:c.End] != c.Label {
				t.Fatalf("[%s] is said to stand at %d to %d of %q", c.Label, c.Start, c.End, text)
			}
			checkCitation(t, c, inner.shown[c.Label], found.docs, out["source_documents"].([]schema.Document))
		}
		if !slices.Equal(labels, inner.labels) {
			t.Fatalf("cited %q, found %q", inner.labels, labels)
		}
		total += len(cited)
	}
	return total
}

func checkCitation(t *rapid.T, c citation.Citation, shown string, found, sources []schema.Document) {
	t.Helper()
	first := c.Documents[0]
	if first.Rank < 1 || first.Rank > len(found) {
		t.Fatalf("[%s] has rank %d of %d", c.Label, first.Rank, len(found))
	}
	original := found[first.Rank-1]
	if first.Block.Text != shown || original.PageContent != shown {
		t.Fatalf("[%s] shows %q, leads to %q at rank %d, which is %q", c.Label, shown, first.Block.Text, first.Rank, original.PageContent)
	}
	version := "@" + passage.ContentVersion(shown) // of an ID that several texts have
	if id := original.Metadata["id"]; first.Block.ID != "" && id != first.Block.ID && !strings.Contains(first.Block.ID, version) {
		t.Fatalf("[%s] leads to ID %q, rank %d has %v", c.Label, first.Block.ID, first.Rank, id)
	}
	docs := retriever.Cited(sources, c.Label)
	if len(docs) == 0 || docs[0].Metadata["url"] != original.Metadata["url"] || docs[0].PageContent != shown {
		t.Fatalf("[%s]: documents %+v, want the one at rank %d", c.Label, docs, first.Rank)
	}
	var ranks, want []int
	for _, d := range docs {
		ranks = append(ranks, d.Metadata[retriever.KeyRank].(int))
	}
	for _, d := range c.Documents {
		want = append(want, d.Rank)
	}
	if diff := cmp.Diff(want, ranks); len(docs) == len(c.Documents) && diff != "" {
		t.Fatalf("[%s]: (-citation +documents)\n%s", c.Label, diff)
	}
}

// In a chat that resends its messages, the label of a reference leads to the document of the turn that showed it.
func TestCitationsOfReferences(t *testing.T) {
	pilot, inner := newPilot(t, contextpilot.Config{}), &fakeCiter{piece: 3}
	var cited []string
	llm := langchain.Wrap(pilot, inner, langchain.WithCitations(func(_ context.Context, c citation.Citation) {
		for _, d := range c.Documents {
			cited = append(cited, fmt.Sprintf("%s: %s#%d/%d", c.Label, d.Block.ID, d.Rank, d.Turn))
		}
	}))
	c := newChat(t, "thread", pilot, inner)
	c.model = llm
	c.ask("pump and valve")
	if diff := cmp.Diff([]string{"pump: pump#1/1", "valve: valve#2/1"}, cited); diff != "" {
		t.Errorf("first turn (-want +got):\n%s", diff)
	}
	cited = nil
	c.ask("motor and pump")
	if diff := cmp.Diff([]string{"motor: motor#1/2", "pump: pump#1/1"}, cited); diff != "" {
		t.Errorf("second turn (-want +got):\n%s", diff)
	}
}

// Rewritten citations reach the caller in the stream and in the answer alike, with nothing held back at the end.
func TestRewrittenCitations(t *testing.T) {
	pilot := newPilot(t, contextpilot.Config{})
	inner := &recorder{}
	inner.do = func(ctx context.Context, o llms.CallOptions) (*llms.ContentResponse, error) {
		for _, chunk := range []string{"See [pu", "mp", "] and [", "sic"} {
			if o.StreamingFunc != nil {
				if err := o.StreamingFunc(ctx, []byte(chunk)); err != nil {
					return nil, err
				}
			}
		}
		return answer("See [pump] and [sic", nil), nil
	}
	calls := 0
	llm := langchain.Wrap(pilot, inner,
		langchain.WithCitations(func(context.Context, citation.Citation) { calls++ }),
		langchain.WithRewrittenCitations(func(_ string, cited []citation.Citation) string {
			return fmt.Sprintf("(%d)", cited[0].Documents[0].Rank)
		}))
	for _, stream := range []bool{false, true} {
		calls = 0
		_, text := hold(pilot, "", "valve", "pump")
		var streamed strings.Builder
		var options []llms.CallOption
		if stream {
			options = append(options, llms.WithStreamingFunc(func(_ context.Context, chunk []byte) error {
				streamed.Write(chunk)
				return nil
			}))
		}
		got := generate(context.Background(), t, llm, []llms.MessageContent{human(text)}, options...)
		if want := "See (2) and [sic"; got != want || stream && streamed.String() != want || calls != 1 {
			t.Errorf("stream %t: %q, streamed %q, %d citations", stream, got, streamed.String(), calls)
		}
	}
}

// The label that the model cites leads to the document, whichever chain built the prompt.
func ExampleWithCitations() {
	pilot, _ := contextpilot.New(contextpilot.Config{})
	model := &fakeCiter{} // a fake model, which cites all that it is shown
	llm := langchain.Wrap(pilot, model, langchain.WithCitations(func(_ context.Context, c citation.Citation) {
		fmt.Printf("[%s] is document %d: %s\n", c.Label, c.Documents[0].Rank, c.Documents[0].Block.Text)
	}))
	chain := chains.NewRetrievalQA(
		chains.NewStuffDocuments(chains.NewLLMChain(llm, retriever.QAPrompt())),
		retriever.Wrap(pilot, manuals{"pump", "valve"}))
	answer, err := chains.Run(context.Background(), chain, "What is a pump?")
	fmt.Println(answer, err)
	// Output:
	// [pump] is document 1: All about the pump.
	// [valve] is document 2: All about the valve.
	// Some [sic] answer [pump], or [valve]. <nil>
}

// Ranks are the retriever's, also where the wrapper plans again without a document that did not fit its budget.
func TestRanksOfACutPlan(t *testing.T) {
	pilot, inner := newPilot(t, contextpilot.Config{}), &fakeCiter{piece: 3}
	ranks := map[string]int{}
	llm := langchain.Wrap(pilot, inner, langchain.WithCitations(func(_ context.Context, c citation.Citation) {
		d := c.Documents[len(c.Documents)-1]
		ranks[c.Label] = d.Rank
	}))
	found := &store{}
	documents := retriever.Wrap(pilot, found, retriever.WithBudget(40))
	var chat []llms.MessageContent
	for _, ids := range [][]string{{"a", "b"}, {"a", "long", "c"}} {
		found.docs = nil
		for _, id := range ids {
			found.docs = append(found.docs, schema.Document{PageContent: strings.Repeat(id+" ", 10), Metadata: map[string]any{"id": id}})
		}
		if i := slices.Index(ids, "long"); i >= 0 {
			found.docs[i].PageContent = strings.Repeat("too long ", 100)
		}
		docs, err := documents.GetRelevantDocuments(in("thread"), "?")
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, d := range docs {
			text.WriteString(d.PageContent + "\n\n")
		}
		chat = append(chat, human(text.String()+"Why?"))
		chat = append(chat, ai(generate(in("thread"), t, llm, chat)))
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 2, "c": 3}, ranks); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
