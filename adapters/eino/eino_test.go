package eino_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/retriever"
	"github.com/cloudwego/eino/schema"
	"go.uber.org/goleak"

	"github.com/ragpilot/ragpilot/adapters/eino"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/framework"
	"github.com/ragpilot/ragpilot/framework/frameworktest"
)

// shelf is a retriever that finds what a question names.
type shelf struct{ err error }

func (s shelf) Retrieve(_ context.Context, query string, _ ...retriever.Option) ([]*schema.Document, error) {
	if s.err != nil {
		return nil, s.err
	}
	var docs []*schema.Document
	for id := range strings.FieldsSeq(query) {
		docs = append(docs, &schema.Document{
			ID: id, Content: "Text of " + id + ". " + strings.Repeat("It is long. ", 20),
			MetaData: map[string]any{"id": id},
		})
	}
	return docs, nil
}

// fakeModel is a fake: it notes what it is asked and answers "yes", in pieces if asked for a stream.
type fakeModel struct {
	asked [][]*schema.Message
	err   error
	late  error // after the first piece of a stream
	tools int
}

func (f *fakeModel) answer(input []*schema.Message) ([]*schema.Message, error) {
	f.asked = append(f.asked, input)
	if f.err != nil {
		return nil, f.err
	}
	u := &schema.TokenUsage{PromptTokens: 100, PromptTokenDetails: schema.PromptTokenDetails{CachedTokens: 40}, CompletionTokens: 1}
	return []*schema.Message{
		schema.AssistantMessage("y", nil), schema.AssistantMessage("es", nil),
		{Role: schema.Assistant, ResponseMeta: &schema.ResponseMeta{Usage: u}},
	}, nil
}

func (f *fakeModel) Generate(_ context.Context, input []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	pieces, err := f.answer(input)
	if err != nil {
		return nil, err
	}
	return schema.ConcatMessages(pieces)
}

func (f *fakeModel) Stream(_ context.Context, input []*schema.Message, _ ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	pieces, err := f.answer(input)
	if err != nil {
		return nil, err
	}
	if f.late == nil {
		return schema.StreamReaderFromArray(pieces), nil
	}
	r, w := schema.Pipe[*schema.Message](3)
	w.Send(pieces[0], nil)
	w.Send(nil, f.late)
	w.Close()
	return r, nil
}

// toolModel is a fakeModel that can be given tools.
type toolModel struct{ *fakeModel }

func (f toolModel) WithTools(tools []*schema.ToolInfo) (model.ToolCallingChatModel, error) {
	return toolModel{&fakeModel{tools: len(tools)}}, nil
}

// prompt asks for documents and puts them into a user message.
func prompt(ctx context.Context, t testing.TB, r retriever.Retriever, question string) *schema.Message {
	t.Helper()
	docs, err := r.Retrieve(ctx, question)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, d := range docs {
		texts = append(texts, d.Content)
	}
	return schema.UserMessage(strings.Join(texts, "\n\n") + "\n\nQuestion: " + question)
}

func TestDocumentsAreLaidOut(t *testing.T) {
	pilot := frameworktest.Pilot(t)
	r := eino.Retriever(pilot, shelf{})
	docs, err := r.Retrieve(t.Context(), "a b a c")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, d := range docs {
		rank, _ := d.MetaData[eino.KeyRank].(int)
		seen[rank] = true
		if d.MetaData[eino.KeyBlockID] != d.ID || d.MetaData["id"] != d.ID ||
			!strings.HasPrefix(fmt.Sprint(d.MetaData[eino.KeyText]), "Text of "+d.ID) || !strings.Contains(d.Content, "Text of "+d.ID) {
			t.Errorf("%+v", d)
		}
		left, _ := d.MetaData[eino.KeyLeftOut].([]*schema.Document)
		for _, l := range left {
			rank, _ := l.MetaData[eino.KeyRank].(int)
			seen[rank] = true
			if l.MetaData[eino.KeyReason] != "duplicate" || l.ID != "a" {
				t.Errorf("left out: %+v", l)
			}
		}
	}
	if len(docs) != 3 || len(seen) != 4 {
		t.Errorf("%d documents, ranks %v: each of the four is to be there once", len(docs), seen)
	}
	if _, err := eino.Retriever(pilot, shelf{err: io.ErrUnexpectedEOF}).Retrieve(t.Context(), "a"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	if docs, err := r.Retrieve(t.Context(), ""); err != nil || len(docs) > 0 {
		t.Errorf("nothing found: %v, %v", docs, err)
	}
}

// A second turn that resends the first refers to its documents, whether answers are streamed or not, and the third call
// sends the same bytes for both; the caller's messages stay as they are.
func TestLaterTurnsRefer(t *testing.T) {
	for _, stream := range []bool{false, true} {
		pilot, inner := frameworktest.Pilot(t), &fakeModel{}
		r, m := eino.Retriever(pilot, shelf{}), eino.ChatModel(pilot, inner)
		ctx := framework.WithConversation(t.Context(), "thread-7")
		ask := func(messages []*schema.Message) *schema.Message {
			if !stream {
				answer, err := m.Generate(ctx, messages)
				if err != nil {
					t.Fatal(err)
				}
				return answer
			}
			s, err := m.Stream(ctx, messages)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var pieces []*schema.Message
			for {
				piece, err := s.Recv()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				pieces = append(pieces, piece)
			}
			answer, err := schema.ConcatMessages(pieces)
			if err != nil {
				t.Fatal(err)
			}
			return answer
		}
		var messages []*schema.Message
		for i, q := range []string{"a b c", "b c d", "d a e"} {
			messages = append(messages, prompt(ctx, t, r, q))
			whole := messages[len(messages)-1].Content
			if answer := ask(messages); answer.Content != "yes" {
				t.Errorf("answer %q", answer.Content)
			} else {
				messages = append(messages, answer)
			}
			sent := inner.asked[i]
			if got := messages[len(messages)-2].Content; got != whole {
				t.Errorf("the caller's message has changed to %q", got)
			}
			if i == 0 {
				continue
			}
			if n := strings.Count(sent[len(sent)-1].Content, "Text of"); n != 1 {
				t.Errorf("turn %d sends %d documents in full: %s", i+1, n, sent[len(sent)-1].Content)
			}
			for j, before := range inner.asked[i-1] {
				if sent[j].Content != before.Content {
					t.Errorf("turn %d sends another message %d than the turn before", i+1, j)
				}
			}
		}
		if st := ended(pilot, 3); framework.OffersOf(pilot).Stats().Held != 0 || st.LiveRequests != 3 || st.EventsUnknown != 0 ||
			st.PrefixReported != 120 {
			t.Errorf("stream %v: %+v", stream, st)
		}
	}
}

func TestFailuresAreTakenBack(t *testing.T) {
	pilot := frameworktest.Pilot(t)
	r := eino.Retriever(pilot, shelf{})
	for i, c := range []struct {
		name  string
		inner *fakeModel
		live  int64
	}{
		{"refused", &fakeModel{err: io.ErrUnexpectedEOF}, 0},
		{"broken off, and served", &fakeModel{late: io.ErrUnexpectedEOF}, 1},
	} {
		name, events := c.name, int64(i+1)
		message := prompt(t.Context(), t, r, "a b")
		s, err := eino.ChatModel(pilot, c.inner).Stream(t.Context(), []*schema.Message{message})
		for err == nil {
			_, err = s.Recv()
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", name, err)
		}
		if s != nil {
			s.Close()
		}
		if st := ended(pilot, events); st.LiveRequests != c.live {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// ended waits until the end of so many requests was reported. Another goroutine reports that of a stream.
func ended(p *contextpilot.Pilot, events int64) contextpilot.Stats {
	for range 10_000 {
		if p.Stats().Events >= events {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return p.Stats()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestToolsStayPossible(t *testing.T) {
	pilot := frameworktest.Pilot(t)
	if _, ok := eino.ChatModel(pilot, &fakeModel{}).(model.ToolCallingChatModel); ok {
		t.Error("a model without tools has become one with")
	}
	m, ok := eino.ChatModel(pilot, toolModel{&fakeModel{}}).(model.ToolCallingChatModel)
	if !ok {
		t.Fatal("a model with tools has lost them")
	}
	with, err := m.WithTools([]*schema.ToolInfo{{Name: "search"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := with.Generate(t.Context(), []*schema.Message{prompt(t.Context(), t, eino.Retriever(pilot, shelf{}), "a b")}); err != nil {
		t.Error(err)
	}
}

// Parts of a message are looked at one by one, and other parts stay.
func TestPartsOfAMessage(t *testing.T) {
	pilot, inner := frameworktest.Pilot(t), &fakeModel{}
	r, m := eino.Retriever(pilot, shelf{}), eino.ChatModel(pilot, inner)
	ctx := framework.WithConversation(t.Context(), "c")
	image := schema.MessageInputPart{Type: schema.ChatMessagePartTypeImageURL}
	parts := func(question string) *schema.Message {
		text := prompt(ctx, t, r, question).Content
		return &schema.Message{
			Role:                  schema.User,
			UserInputMultiContent: []schema.MessageInputPart{image, {Type: schema.ChatMessagePartTypeText, Text: text}},
		}
	}
	messages := []*schema.Message{parts("a b")}
	for range 2 {
		if _, err := m.Generate(ctx, messages); err != nil {
			t.Fatal(err)
		}
		messages = append(messages, schema.AssistantMessage("yes", nil), parts("b c"))
	}
	sent := inner.asked[1][2].UserInputMultiContent
	if len(sent) != 2 || sent[0].Type != image.Type || strings.Contains(sent[1].Text, "Text of b") ||
		!strings.Contains(sent[1].Text, "Text of c") {
		t.Errorf("%+v", sent)
	}
}

func TestWithoutHold(t *testing.T) {
	frameworktest.RunUnclaimed(t, func(t *testing.T, pilot *contextpilot.Pilot, hold bool) func() {
		model := eino.ChatModel(pilot, &fakeModel{}) // another model, which these documents do not go to
		var opts []eino.Option
		if !hold {
			opts = append(opts, eino.WithoutHold())
		}
		r := eino.Retriever(pilot, shelf{}, opts...)
		return func() {
			prompt(t.Context(), t, r, "a b")
			runtime.KeepAlive(model)
		}
	})
}
