package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

// way says who reads which document.
type way string

const (
	byAffinity way = "affinity"    // who has read it before, as far as each can have one document only
	roundRobin way = "round robin" // one after the other, beginning with the next agent for each question
	byRank     way = "rank"        // the first agent always the best document, and so on
)

// agent is a prompt of its own, and here an engine of its own, too; agents that share one differ by their scopes.
type agent struct {
	scope  contextpilot.Scope
	engine engines.Engine
	system string
}

// chain is the agents of one Chain-of-Agents, and what they have computed.
type chain struct {
	pilot     *contextpilot.Pilot
	readers   []agent
	scopes    []contextpilot.Scope // of readers
	manager   agent
	questions int

	prompt, computed, reading int // tokens; reading is the readers' part of computed
}

func newChain(readers int) (*chain, error) {
	pilot, err := contextpilot.New(contextpilot.Config{MaxScopes: readers + 1})
	if err != nil {
		return nil, err
	}
	c := &chain{pilot: pilot}
	for i := range readers {
		c.readers = append(c.readers,
			c.hire(fmt.Sprintf("reader %d", i+1),
				"You get one document and a question. Say in one sentence what the document contributes to the answer."))
		c.scopes = append(c.scopes, c.readers[i].scope)
	}
	c.manager = c.hire("manager", "You get what readers of single documents say, and a question. Answer it.")
	return c, nil
}

// hire makes an agent whose engine reports its cache to the pilot.
func (c *chain) hire(name, task string) agent {
	a := agent{scope: contextpilot.Scope{Replica: name}, engine: sim.New(sim.Options{}), system: fmt.Sprintf("You are %s. %s", name, task)}
	a.engine.Subscribe(c.pilot.Sink(a.scope)) // as long as the program runs
	return a
}

// answer lets the readers read and the manager answer.
func (c *chain) answer(ctx context.Context, q trace.Request, blocks *trace.Blocks, w way) error {
	requests := make([]contextpilot.Request, len(q.Docs))
	for i, id := range q.Docs {
		text, _ := blocks.Text(id)
		requests[i] = contextpilot.Request{Query: q.Query, Blocks: []contextpilot.Block{{ID: id, Text: text}}}
	}
	to, err := c.share(requests, w)
	if err != nil {
		return err
	}
	var said strings.Builder
	for i, req := range requests {
		reader := c.readers[to[i]]
		req.Scope = reader.scope
		plan := c.pilot.Plan(req)
		text, computed, err := c.ask(ctx, reader, plan.RequestID, plan.Prompt(q.Query))
		if err != nil {
			return err
		}
		c.reading += computed
		fmt.Fprintf(&said, "%s\n", text)
	}
	_, _, err = c.ask(ctx, c.manager, "", said.String()+q.Query)
	return err
}

// share returns the reader of each request.
func (c *chain) share(requests []contextpilot.Request, w way) ([]int, error) {
	c.questions++
	if w == byAffinity {
		a, err := engines.Assign(c.pilot, requests, c.scopes)
		return a.To, err
	}
	to := make([]int, len(requests))
	for i := range to {
		to[i] = i % len(c.readers)
		if w == roundRobin {
			to[i] = (i + c.questions) % len(c.readers)
		}
	}
	return to, nil
}

func (c *chain) ask(ctx context.Context, a agent, id, prompt string) (text string, computed int, err error) {
	answer, err := a.engine.Generate(ctx, engines.Request{ID: id, Messages: []engines.Message{
		{Role: engines.System, Content: a.system}, {Role: engines.User, Content: prompt},
	}}, nil)
	if err != nil {
		return "", 0, fmt.Errorf("%s: %w", a.scope.Replica, err)
	}
	computed = answer.Usage.PromptTokens - answer.Usage.CachedTokens
	c.prompt += answer.Usage.PromptTokens
	c.computed += computed
	return answer.Text, computed, nil
}
