package main

import (
	"context"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/tools"
)

// run has an agent with some tools answer the question.
func run(model llms.Model, list ...tools.Tool) string {
	agent := agents.NewOpenAIFunctionsAgent(model, list)
	return must(chains.Run(context.Background(), agents.NewExecutor(agent), "Who works the gates for my boat?"))
}
