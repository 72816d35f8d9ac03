package retriever_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/langchain"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/retriever"
)

// The examples of docs/langchaingo.md, in five and in fifteen lines beside what a program has: a model, a store, a question.

// check stands for what a program does with an error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// vectors is a vector store in the process, as langchaingo has none: cosines of hashed words and trigrams.
type vectors struct {
	embed.Hashed
	docs []schema.Document
	of   [][]float32
}

var _ vectorstores.VectorStore = (*vectors)(nil)

func (v *vectors) AddDocuments(ctx context.Context, docs []schema.Document, _ ...vectorstores.Option) (ids []string, err error) {
	for _, d := range docs {
		vector, err := v.EmbedQuery(ctx, d.PageContent)
		if err != nil {
			return nil, err
		}
		ids = append(ids, fmt.Sprint(len(v.docs)))
		v.docs, v.of = append(v.docs, d), append(v.of, vector)
	}
	return ids, nil
}

func (v *vectors) SimilaritySearch(ctx context.Context, query string, n int, _ ...vectorstores.Option) ([]schema.Document, error) {
	asked, err := v.EmbedQuery(ctx, query)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(v.docs)
	for i, vector := range v.of {
		out[i].Score = 0
		for j := range vector {
			out[i].Score += vector[j] * asked[j]
		}
	}
	slices.SortStableFunc(out, func(a, b schema.Document) int { return cmp.Compare(b.Score, a.Score) })
	return out[:min(n, len(out))], nil
}

// manual is what the examples ask about.
func manual() []schema.Document {
	docs := make([]schema.Document, 0, 4)
	for _, page := range [][2]string{
		{"pump.md", "The pump feeds the boiler with water and is checked every Monday before the boiler is lit."},
		{"valve.md", "The valve closes when the boiler is full of water, and is opened again by hand."},
		{"motor.md", "The motor drives the pump and needs oil once a year, when the boiler is cold."},
		{"bell.md", "The bell rings at noon."},
	} {
		docs = append(docs, schema.Document{PageContent: page[1], Metadata: map[string]any{"source": page[0]}})
	}
	return docs
}

func filled() *vectors {
	db := &vectors{Hashed: embed.NewHashed(384)}
	_, err := db.AddDocuments(context.Background(), manual())
	check(err)
	return db
}

// scripted is a simulator with a cache that is real, and with an answer of its own making.
func scripted(answer string) *sim.Engine {
	return sim.New(sim.Options{Reply: func(engines.Request) string { return answer }})
}

func Example_five() {
	model, question := langchain.Model(scripted("On Mondays.")), "When is the pump checked?"
	inner := vectorstores.ToRetriever(filled(), 2)

	pilot, _ := contextpilot.New(contextpilot.Config{})
	llm := langchain.Wrap(pilot, model)                                   // any llms.Model
	qa := chains.NewRetrievalQAFromLLM(llm, retriever.Wrap(pilot, inner)) // any schema.Retriever
	ctx := framework.WithConversation(context.Background(), "thread-7")
	answer, err := chains.Run(ctx, qa, question)

	fmt.Println(answer, err)
	// Output: On Mondays. <nil>
}

func Example_fifteen() {
	ctx, model := context.Background(), langchain.Model(scripted("On Mondays [pump.md@76437c3b]."))
	inner, question := vectorstores.ToRetriever(filled(), 3), "When is the pump checked?"

	pilot, err := contextpilot.New(contextpilot.Config{Policy: contextpilot.DefaultPolicy})
	check(err)
	documents := retriever.Wrap(pilot, inner, retriever.WithIDKeys("source"), retriever.WithBudget(2000))
	prompted := chains.NewLLMChain(langchain.Wrap(pilot, model), retriever.QAPrompt()) // which asks for citations
	qa := chains.NewRetrievalQA(chains.NewStuffDocuments(prompted), documents)
	qa.ReturnSourceDocuments = true
	ctx = framework.WithConversation(ctx, "user-42/thread-7")
	out, err := chains.Call(ctx, qa, map[string]any{"query": question})
	check(err)
	sent := out["source_documents"].([]schema.Document)
	fmt.Println(out["text"], "-", retriever.Cited(sent, "pump.md@76437c3b")[0].PageContent)
	for _, d := range retriever.Sources(sent) { // what was retrieved, in the retriever's order
		fmt.Println(d.Metadata[retriever.KeyRank], d.Metadata[retriever.KeyLabel])
	}

	// Output:
	// On Mondays [pump.md@76437c3b]. - The pump feeds the boiler with water and is checked every Monday before the boiler is lit.
	// 1 pump.md@76437c3b
	// 2 motor.md@a760d68a
	// 3 valve.md@d8631c54
}

func Example_vectorStoreFive() {
	db, ctx, question := filled(), context.Background(), "When is the pump checked?"
	model := langchain.Model(scripted("On Mondays."))

	pilot, _ := contextpilot.New(contextpilot.Config{})
	found := retriever.Wrap(pilot, vectorstores.ToRetriever(db, 2)) // any vectorstores.VectorStore
	qa := chains.NewRetrievalQAFromLLM(langchain.Wrap(pilot, model), found)
	ctx = framework.WithConversation(ctx, "thread-7")
	answer, err := chains.Run(ctx, qa, question)

	fmt.Println(answer, err)
	// Output: On Mondays. <nil>
}

func Example_vectorStoreFifteen() {
	db, ctx := &vectors{Hashed: embed.NewHashed(384)}, context.Background()
	engine, pages := scripted("It says so."), manual()
	model := langchain.Model(engine)

	_, err := db.AddDocuments(ctx, pages)
	check(err)
	calm, err := retriever.NewSteady(vectorstores.ToRetriever(db, 4), retriever.SteadyOptions{
		K: 3, IDKeys: []string{"source"}, // equal questions give equal documents, even if the store's scores jitter
	})
	check(err)
	pilot, _ := contextpilot.New(contextpilot.Config{})
	planned := retriever.Wrap(pilot, calm, retriever.WithIDKeys("source"))
	qa := chains.NewRetrievalQAFromLLM(langchain.Wrap(pilot, model), planned)
	ctx = framework.WithConversation(ctx, "thread-7")
	for _, question := range []string{"When is the pump checked?", "How does the motor drive the pump?"} {
		answer, err := chains.Run(ctx, qa, question)
		check(err)
		fmt.Println(question, answer)
	}

	fmt.Println(engine.Stats().HitTokens, "of", engine.Stats().PromptTokens, "prompt tokens read from the cache")
	// Output:
	// When is the pump checked? It says so.
	// How does the motor drive the pump? It says so.
	// 64 of 295 prompt tokens read from the cache
}
