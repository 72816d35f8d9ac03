package enginetest

import (
	"context"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/engines"
)

// patience bounds a whole check, so that an engine that hangs fails the suite instead of stopping it.
const patience = 30 * time.Second

// check is one property of an engine. It gets an engine that nothing else uses and a context that ends after
// patience.
type check struct {
	name string
	run  func(ctx context.Context, t testing.TB, e engines.Engine)
}

// checks returns the suite.
func checks() []check {
	return []check{
		{"Name", checkName},
		{"PiecesMakeText", checkPieces},
		{"NilCallback", checkNilCallback},
		{"RequestID", checkRequestID},
		{"Usage", checkUsage},
		{"Times", checkTimes},
		{"CallbackErrorStops", checkCallbackError},
		{"CancelledBefore", checkCancelledBefore},
		{"CancelledDuring", checkCancelledDuring},
		{"Concurrent", checkConcurrent},
		{"ServedEvent", checkServed},
		{"ServedOnlyWhenComplete", checkServedOnlyComplete},
		{"SubscriptionEnds", checkSubscriptionEnds},
		{"SeveralSubscribers", checkSeveralSubscribers},
	}
}

// Run checks that the engines made by newEngine keep the contract of [engines.Engine], each check in a subtest with
// an engine of its own. newEngine registers its cleanup with the t it is given.
func Run(t *testing.T, newEngine func(t *testing.T) engines.Engine) {
	t.Helper()
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c.run(ctx, t, newEngine(t))
		})
	}
}

// chat returns a request with a short conversation that names its subject, so that answers of different requests
// can differ.
func chat(id, subject string) engines.Request {
	return engines.Request{
		ID: id,
		Messages: []engines.Message{
			{Role: engines.System, Content: "Answer from the passages."},
			{Role: engines.User, Content: "Passage: all about " + subject + ".\n\nQuestion: what is known of " + subject + "?"},
		},
		MaxTokens: 32,
	}
}

// answer runs a request that must succeed and returns the response with the pieces that came.
func answer(ctx context.Context, t testing.TB, e engines.Engine, req engines.Request) (engines.Response, []string) {
	t.Helper()
	var pieces []string
	response, err := e.Generate(ctx, req, func(piece string) error {
		pieces = append(pieces, piece)
		return nil
	})
	if err != nil {
		t.Fatalf("Generate(%q) = %v", req.ID, err)
	}
	return response, pieces
}
