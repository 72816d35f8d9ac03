package server

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net/http"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/internal/openaiserver"
)

// question is a completion that was asked for.
type question struct {
	openaiserver.Completion
	context string // a compressed one; empty: none
	prompts [][]int32
	request engines.Request
}

// maxID bounds a request's ID in bytes.
const maxID = 512

// defaultCompletion is how many tokens a completion has that does not say; a chat has as many as the engine says.
const defaultCompletion = 16

// ask reads a request for a completion.
func (s *Server) ask(m members, header http.Header, k *openaiserver.Kind) (*question, error) {
	q := &question{Completion: openaiserver.Completion{Kind: k, ID: header.Get("X-Request-Id")}}
	if q.ID == "" {
		if err := m.get("request_id", &q.ID, aText); err != nil {
			return nil, err
		}
	}
	if len(q.ID) > maxID {
		return nil, openaiserver.Wrong("request_id", "request ID of %d bytes: want at most %d", len(q.ID), maxID)
	}
	if q.ID == "" {
		q.ID = rand.Text()
	}
	var options struct {
		Usage     bool `json:"include_usage"`
		Continual bool `json:"continuous_usage_stats"`
	}
	tokenIDs := false
	for _, x := range []struct {
		name, want string
		to         any
	}{
		{"stream", aBool, &q.Stream},
		{"stream_options", "an object", &options},
		{"return_token_ids", aBool, &tokenIDs},
		{"context", aText, &q.context},
		{"blocks", "a list of objects with message, from and to", &q.request.Blocks},
	} {
		if err := m.get(x.name, x.to, x.want); err != nil {
			return nil, err
		}
	}
	var err error
	if q.request.Extra, err = m.forEngine(); err != nil {
		return nil, err
	}
	if options.Continual {
		return nil, openaiserver.Wrong("stream_options", "stream_options.continuous_usage_stats true: not supported by this server")
	}
	q.Usage = options.Usage
	if err := m.understood(); err != nil {
		return nil, err
	}
	if q.Model, err = s.model(m); err != nil {
		return nil, err
	}
	if err := s.prompts(q, m); err != nil {
		return nil, err
	}
	q.Prompts = len(q.prompts)
	if tokenIDs {
		q.Tokens = q.prompts
	}
	return q, nil
}

// model checks which model is asked for. None is the one that is served.
func (s *Server) model(m members) (string, error) {
	name := s.engine.Model()
	if err := m.get("model", &name, "a text"); err != nil {
		return "", err
	}
	if name = cmp.Or(name, s.engine.Model()); name != s.engine.Model() { // vLLM takes an empty one for none, too
		return "", noModel(name)
	}
	return name, nil
}

func noModel(name string) *openaiserver.Refusal {
	e := openaiserver.Wrong("model", "model %q is not served here", openaiserver.Shorten(name, 80))
	e.Status = http.StatusNotFound
	return e
}

func (s *Server) prompts(q *question, m members) (err error) {
	if q.Kind.Chat {
		chat, err := m.messages()
		if err != nil {
			return err
		}
		size := 0
		for _, x := range chat {
			size += len(x.Content)
		}
		if err := s.fits("messages", size); err != nil {
			return err
		}
		q.request.Messages = chat
		tokens, blocks, err := s.engine.TokenizeBlocks(q.request)
		q.prompts, q.request.Messages, q.request.Blocks = [][]int32{tokens}, nil, blocks
		return err
	}
	if len(q.request.Blocks) > 0 {
		return openaiserver.Wrong("blocks", "blocks: only /v1/chat/completions takes them")
	}
	tokenize := s.engine.Tokenize
	special := true
	if err := m.get("add_special_tokens", &special, "true or false"); err != nil {
		return err
	}
	if !special {
		tokenize = s.engine.TokenizeBare
	}
	q.prompts, err = m.prompts(func(text string) ([]int32, error) {
		if err := s.fits("prompt", len(text)); err != nil {
			return nil, err
		}
		return tokenize(text), nil
	})
	return err
}

// Tokenizing takes up to 60 times a text's memory.
const (
	// longestToken is more bytes than a token of any vocabulary that we have seen stands for.
	longestToken = 512
	maxText      = 1 << 20 // bytes that /tokenize takes, where no window bounds them
)

// fits refuses a text that is longer than any of as many tokens as there is room for, before it is tokenized.
func (s *Server) fits(member string, size int) error {
	if most := (s.engine.Context() + 1) * longestToken; size > most {
		return openaiserver.Wrong(member, "%s: %d bytes are more than the %d tokens that there is room for", member, size, s.engine.Context())
	}
	return nil
}

// tokenizable refuses a text that is too long for /tokenize.
func (s *Server) tokenizable(member, text string) error {
	if most := max(maxText, (s.engine.Context()+1)*longestToken); len(text) > most {
		return openaiserver.Wrong(member, "%s: %d bytes, want at most %d", member, len(text), most)
	}
	return nil
}

// prompt is the request for one of the prompts.
func (s *Server) prompt(q *question, i int) engines.Request {
	req := q.request
	req.ID = q.ID
	if len(q.prompts) > 1 {
		req.ID = fmt.Sprintf("%s-%d", q.ID, i)
	}
	_, short := req.Extra["max_tokens"]
	_, long := req.Extra["max_completion_tokens"]
	if !short && !long && !q.Kind.Chat {
		room, _ := s.engine.Room(q.context) // the engine refuses a context that it has not
		req.MaxTokens = max(1, min(defaultCompletion, room-len(q.prompts[i])))
	}
	return req
}
