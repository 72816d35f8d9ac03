package genkit_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/adapters/genkit"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/framework/frameworktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shelf is a retriever that finds what a question names.
func shelf() ai.Retriever {
	return ai.NewRetriever("test/shelf", nil, func(_ context.Context, req *ai.RetrieverRequest) (*ai.RetrieverResponse, error) {
		query := req.Query.Content[0].Text
		if query == "?" {
			return nil, io.ErrUnexpectedEOF
		}
		out := &ai.RetrieverResponse{}
		for id := range strings.FieldsSeq(query) {
			d := ai.DocumentFromText("Text of "+id+". "+strings.Repeat("It is long. ", 20), map[string]any{"id": id})
			if id == "image" {
				d.Content = append(d.Content, ai.NewMediaPart("image/png", "data:,"))
			}
			out.Documents = append(out.Documents, d)
		}
		return out, nil
	})
}

func find(ctx context.Context, r ai.Retriever, query string) ([]*ai.Document, error) {
	out, err := r.Retrieve(ctx, &ai.RetrieverRequest{Query: ai.DocumentFromText(query, nil)})
	if err != nil {
		return nil, err
	}
	return out.Documents, nil
}

// fakeModel is a fake: it notes what it is asked and answers "yes".
type fakeModel struct {
	asked []*ai.ModelRequest
	err   error // after a piece was streamed, if a stream is wanted
}

func (f *fakeModel) generate(ctx context.Context, req *ai.ModelRequest, stream ai.ModelStreamCallback) (*ai.ModelResponse, error) {
	f.asked = append(f.asked, req)
	if stream != nil {
		if err := stream(ctx, &ai.ModelResponseChunk{Content: []*ai.Part{ai.NewTextPart("y")}}); err != nil {
			return nil, err
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	return &ai.ModelResponse{
		Request: req, Message: ai.NewModelTextMessage("yes"),
		Usage: &ai.GenerationUsage{InputTokens: 100, CachedContentTokens: 40, OutputTokens: 1},
	}, nil
}

func TestDocumentsAreLaidOut(t *testing.T) {
	pilot := frameworktest.Pilot(t)
	r := genkit.Retriever(pilot, shelf())
	if r.Name() != "ragpilot/test/shelf" {
		t.Errorf("named %q", r.Name())
	}
	docs, err := find(t.Context(), r, "a b a c")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[any]bool{}
	for _, d := range docs {
		seen[d.Metadata[genkit.KeyRank]] = true
		id := d.Metadata["id"].(string)
		if text := d.Content[0].Text; d.Metadata[genkit.KeyBlockID] != id || !strings.Contains(text, "Text of "+id) ||
			!strings.HasPrefix(d.Metadata[genkit.KeyText].(string), "Text of "+id) {
			t.Errorf("%+v", d)
		}
		left, _ := d.Metadata[genkit.KeyLeftOut].([]*ai.Document)
		for _, l := range left {
			seen[l.Metadata[genkit.KeyRank]] = true
			if l.Metadata[genkit.KeyReason] != "duplicate" || l.Metadata["id"] != "a" {
				t.Errorf("left out: %+v", l)
			}
		}
	}
	if len(docs) != 3 || len(seen) != 4 {
		t.Errorf("%d documents, ranks %v: each of the four is to be there once", len(docs), seen)
	}
	if _, err := find(t.Context(), r, "?"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	if docs, err := find(t.Context(), r, "b image"); err != nil || len(docs) != 2 || docs[0].Metadata[genkit.KeyRank] != nil {
		t.Errorf("with an image: %+v, %v, want them untouched", docs, err)
	}
}

// Documents go in front of the question; a second turn that resends the first refers to its documents, and the history
// is sent as it was.
func TestLaterTurnsRefer(t *testing.T) {
	pilot, inner := frameworktest.Pilot(t), &fakeModel{}
	r := genkit.Retriever(pilot, shelf())
	model := genkit.Middleware(pilot)(inner.generate)
	ctx := framework.WithConversation(t.Context(), "thread-7")
	var history []*ai.Message
	for i, q := range []string{"a b c", "b c d", "d a e"} {
		docs, err := find(ctx, r, q)
		if err != nil {
			t.Fatal(err)
		}
		req := ai.NewModelRequest(nil, append(history, ai.NewUserTextMessage("Question: "+q))...)
		req.Docs = docs
		answer, err := model(ctx, req, nil)
		if err != nil || answer.Text() != "yes" {
			t.Fatalf("%+v, %v", answer, err)
		}
		if len(req.Docs) != 3 || len(req.Messages[len(req.Messages)-1].Content) != 1 {
			t.Errorf("the caller's request has changed: %+v", req)
		}
		sent := inner.asked[i].Messages
		last := sent[len(sent)-1].Content
		if len(last) != 2 || last[1].Text != "Question: "+q || len(inner.asked[i].Docs) > 0 {
			t.Fatalf("turn %d: %+v", i+1, inner.asked[i])
		}
		want := 1
		if i == 0 {
			want = 3
		}
		if n := strings.Count(last[0].Text, "Text of"); n != want {
			t.Errorf("turn %d sends %d documents in full: %s", i+1, n, last[0].Text)
		}
		history = append(slices.Clip(sent), answer.Message) // as Genkit's ModelResponse.History does
	}
	if st := pilot.Stats(); framework.OffersOf(pilot).Stats().Held != 0 || st.LiveRequests != 3 || st.EventsUnknown != 0 ||
		st.PrefixReported != 120 {
		t.Errorf("%+v", st)
	}
}

func TestFailuresAreTakenBack(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		pilot := frameworktest.Pilot(t)
		docs, err := find(t.Context(), genkit.Retriever(pilot, shelf()), "a b")
		if err != nil {
			t.Fatal(err)
		}
		var stream ai.ModelStreamCallback
		if streamed {
			stream = func(context.Context, *ai.ModelResponseChunk) error { return nil }
		}
		req := ai.NewModelRequest(nil, ai.NewUserTextMessage("?"))
		req.Docs = docs
		inner := &fakeModel{err: io.ErrUnexpectedEOF}
		if _, err := genkit.Middleware(pilot)(inner.generate)(t.Context(), req, stream); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%v", err)
		}
		if live := pilot.Stats().LiveRequests; live > 0 != streamed {
			t.Errorf("streamed %v: %d requests in the index", streamed, live)
		}
	}
}

func TestWithoutHold(t *testing.T) {
	frameworktest.RunUnclaimed(t, func(t *testing.T, pilot *contextpilot.Pilot, hold bool) func() {
		model := genkit.Middleware(pilot) // for another model, which these documents do not go to
		var opts []genkit.Option
		if !hold {
			opts = append(opts, genkit.WithoutHold())
		}
		r := genkit.Retriever(pilot, shelf(), opts...)
		return func() {
			if _, err := find(t.Context(), r, "a b"); err != nil {
				t.Fatal(err)
			}
			runtime.KeepAlive(model)
		}
	})
}
