package server

import (
	"net/http"

	"github.com/ragpilot/ragpilot/internal/openaiserver"
)

// tokenize answers with the tokens of a text or of a chat.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	m, err := s.read(w, r)
	var tokens []int32
	texts := false
	if err == nil {
		tokens, err = s.tokens(m)
	}
	if err == nil {
		err = m.get("return_token_strs", &texts, "true or false")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	type body struct {
		Count  int      `json:"count"`
		Window int      `json:"max_model_len"`
		Tokens []int32  `json:"tokens"`
		Texts  []string `json:"token_strs"`
	}
	b := body{len(tokens), s.engine.Context(), append([]int32{}, tokens...), nil}
	if texts {
		b.Texts = make([]string, len(tokens))
		for i, t := range tokens {
			b.Texts[i] = s.engine.Detokenize([]int32{t})
		}
	}
	s.front.WriteJSON(w, b)
}

func (s *Server) tokens(m members) ([]int32, error) {
	if _, err := s.model(m); err != nil {
		return nil, err
	}
	if err := m.understood(); err != nil {
		return nil, err
	}
	chat, text := openaiserver.Given(m["messages"]), openaiserver.Given(m["prompt"])
	if chat == text {
		return nil, openaiserver.Wrong("prompt", "want prompt or messages, and not both")
	}
	if chat {
		messages, err := m.messages()
		if err != nil {
			return nil, err
		}
		for _, x := range messages {
			if err := s.tokenizable("messages", x.Content); err != nil {
				return nil, err
			}
		}
		return s.engine.TokenizeChat(messages), nil
	}
	prompt, special := "", true
	if err := m.get("prompt", &prompt, "a text"); err != nil {
		return nil, err
	}
	if err := m.get("add_special_tokens", &special, "true or false"); err != nil {
		return nil, err
	}
	if err := s.tokenizable("prompt", prompt); err != nil {
		return nil, err
	}
	if !special {
		return s.engine.TokenizeBare(prompt), nil
	}
	return s.engine.Tokenize(prompt), nil
}

// detokenize answers with the text of tokens.
func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) {
	m, err := s.read(w, r)
	if err == nil {
		_, err = s.model(m)
	}
	var tokens []int32
	if err == nil {
		tokens, err = tokenList("tokens", m["tokens"])
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.front.WriteJSON(w, map[string]string{"prompt": s.engine.Detokenize(tokens)})
}
