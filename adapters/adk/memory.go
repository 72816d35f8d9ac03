package adk

import (
	"context"
	"fmt"
	"strings"

	adkmemory "google.golang.org/adk/memory"
	"google.golang.org/adk/session"
	"google.golang.org/genai"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/memory"
)

// MemoryOptions configure [Memory].
type MemoryOptions struct {
	// K is how many memories a search gives at most; 0: [memory.DefaultK].
	K int
	// Scope is the engine's cache that the prompts go to; the zero Scope is the default.
	Scope contextpilot.Scope
	// Extractor says what of a session is remembered; nil: the store's own.
	Extractor memory.Extractor
}

type service struct {
	MemoryOptions
	pilot *contextpilot.Pilot
	store memory.Store
}

// Memory returns a memory service over a store. A user's memories are those of one application: its name is the scope's
// Agent, the session its Run. It is safe for concurrent use.
func Memory(pilot *contextpilot.Pilot, store memory.Store, o MemoryOptions) adkmemory.Service {
	return &service{o, pilot, store}
}

// AddSessionToMemory adds what was said in a session. Texts that the session has been added with before are known.
func (s *service) AddSessionToMemory(ctx context.Context, sess session.Session) error {
	var said []memory.Message
	for e := range sess.Events().All() {
		if e.Content == nil || e.Partial {
			continue
		}
		if text := textOf(e.Content); text != "" {
			role := memory.Assistant
			if e.Content.Role == genai.RoleUser {
				role = memory.User
			}
			said = append(said, memory.Message{Role: role, Content: text, Name: e.Author})
		}
	}
	if len(said) == 0 {
		return nil
	}
	scope := memory.Scope{User: sess.UserID(), Agent: sess.AppName(), Run: sess.ID()}
	if _, err := s.store.Add(ctx, scope, said, memory.AddOptions{Extractor: s.Extractor}); err != nil {
		return fmt.Errorf("adk: session %q: %w", sess.ID(), err)
	}
	return nil
}

func textOf(c *genai.Content) string {
	var texts []string
	for _, p := range c.Parts {
		if p.Text != "" && !p.Thought {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// SearchMemory returns the memories for a query, laid out by the pilot. They carry no time.
func (s *service) SearchMemory(ctx context.Context, req *adkmemory.SearchRequest) (*adkmemory.SearchResponse, error) {
	hits, err := s.store.Search(ctx, memory.Scope{User: req.UserID, Agent: req.AppName}, req.Query, s.K, memory.SearchOptions{})
	if err != nil {
		return nil, fmt.Errorf("adk: %w", err)
	}
	out := &adkmemory.SearchResponse{Memories: make([]adkmemory.Entry, 0, len(hits))}
	if len(hits) == 0 {
		return out, nil
	}
	blocks := make([]contextpilot.Block, len(hits))
	for i, h := range hits {
		blocks[i] = contextpilot.Block{ID: h.Memory.BlockID(), Text: h.Memory.Text, Score: h.Score}
	}
	plan := s.pilot.Plan(contextpilot.Request{Scope: s.Scope, Query: req.Query, Blocks: blocks, NoEcho: true})
	// The agent puts the texts where it likes: the plan cannot be found again, so it is taken for sent.
	s.pilot.Observe(contextpilot.Event{Kind: contextpilot.Served, Scope: plan.Scope, Request: plan.RequestID})
	for _, item := range plan.Items {
		m := &hits[item.Index].Memory
		out.Memories = append(out.Memories, adkmemory.Entry{
			ID: m.ID, Content: genai.NewContentFromText(m.Text, roleOf(m.Role)), Author: m.Actor, CustomMetadata: m.Metadata,
		})
	}
	return out, nil
}

func roleOf(role string) genai.Role {
	if memory.Role(role) == memory.Assistant {
		return genai.RoleModel
	}
	return genai.RoleUser
}
