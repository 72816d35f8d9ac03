package main

import (
	"context"
	"fmt"

	"github.com/tmc/langchaingo/llms"

	"github.com/ragpilot/ragpilot/engines"
	"github.com/ragpilot/ragpilot/engines/sim"
)

// fake is a model that searches three times before it answers.
type fake struct {
	llms.Model
	*sim.Engine
}

func (f fake) GenerateContent(ctx context.Context, messages []llms.MessageContent, _ ...llms.CallOption) (*llms.ContentResponse, error) {
	var req engines.Request
	for _, m := range messages {
		if m.Role != llms.ChatMessageTypeAI { // the calls, of which nothing is counted here
			req.Messages = append(req.Messages, engines.Message{Role: engines.User, Content: fmt.Sprint(m.Parts[0])})
		}
	}
	_, err := f.Generate(ctx, req, nil)
	choice := &llms.ContentChoice{Content: "The keeper, if it carries goods."}
	queries := []string{"who works the gates", "paddles of the gates", "boats that wait for the keeper"}
	if step := len(req.Messages) - 2; step < len(queries) { // behind the system text and the question
		choice.ToolCalls = []llms.ToolCall{{FunctionCall: &llms.FunctionCall{Name: "search", Arguments: queries[step]}}}
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{choice}}, err
}
