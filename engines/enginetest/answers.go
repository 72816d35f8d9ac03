package enginetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/ragpilot/ragpilot/engines"
)

func checkName(_ context.Context, t testing.TB, e engines.Engine) {
	if e.Name() == "" {
		t.Error("Name is empty")
	}
}

// checkPieces: the pieces are the text, each given once and in order. An empty piece is allowed.
func checkPieces(ctx context.Context, t testing.TB, e engines.Engine) {
	response, pieces := answer(ctx, t, e, chat("pieces-1", "rivers"))
	if got := strings.Join(pieces, ""); got != response.Text {
		t.Errorf("the pieces make %q, the response has %q", got, response.Text)
	}
	if response.Text == "" {
		t.Error("the answer is empty")
	}
	full := 0
	for _, piece := range pieces {
		if piece != "" {
			full++
		}
	}
	if full < 2 {
		t.Errorf("the answer came in %d pieces; the suite needs an engine that streams", full)
	}
}

func checkNilCallback(ctx context.Context, t testing.TB, e engines.Engine) {
	response, err := e.Generate(ctx, chat("nil-1", "lakes"), nil)
	if err != nil {
		t.Fatalf("Generate without a callback: %v", err)
	}
	if response.Text == "" {
		t.Error("the answer is empty")
	}
}

// checkRequestID: the response has the ID of its request, and one of the engine's choice if there was none.
func checkRequestID(ctx context.Context, t testing.TB, e engines.Engine) {
	const id = "ID with-odd_characters.1:2/3"
	if response, _ := answer(ctx, t, e, chat(id, "hills")); response.ID != id {
		t.Errorf("response ID %q, want %q", response.ID, id)
	}
	first, _ := answer(ctx, t, e, chat("", "hills"))
	second, _ := answer(ctx, t, e, chat("", "hills"))
	if first.ID == "" || second.ID == "" {
		t.Errorf("requests without ID were answered with IDs %q and %q", first.ID, second.ID)
	}
	if first.ID == second.ID {
		t.Errorf("two requests without ID have the same ID %q", first.ID)
	}
}

func checkUsage(ctx context.Context, t testing.TB, e engines.Engine) {
	for _, id := range []string{"usage-cold", "usage-warm"} {
		response, _ := answer(ctx, t, e, chat(id, "seas"))
		u := response.Usage
		if u.PromptTokens <= 0 || u.OutputTokens <= 0 {
			t.Errorf("%s: usage %+v: prompt and output must be counted", id, u)
		}
		if u.CachedTokens < 0 || u.CachedTokens > u.PromptTokens {
			t.Errorf("%s: usage %+v: cached tokens are not within the prompt", id, u)
		}
		if !u.CachedKnown && u.CachedTokens != 0 {
			t.Errorf("%s: usage %+v: cached tokens without CachedKnown", id, u)
		}
		if response.Finish == "" {
			t.Errorf("%s: no finish reason", id)
		}
	}
}

func checkTimes(ctx context.Context, t testing.TB, e engines.Engine) {
	response, _ := answer(ctx, t, e, chat("times-1", "winds"))
	if response.TTFT < 0 || response.Total < response.TTFT {
		t.Errorf("TTFT %v and Total %v", response.TTFT, response.Total)
	}
}

// checkCallbackError: the first error of the callback ends the request and is returned.
func checkCallbackError(ctx context.Context, t testing.TB, e engines.Engine) {
	enough := errors.New("enough")
	var pieces []string
	response, err := e.Generate(ctx, chat("stop-1", "forests"), func(piece string) error {
		pieces = append(pieces, piece)
		return enough
	})
	if !errors.Is(err, enough) {
		t.Errorf("error %v does not wrap the callback's", err)
	}
	if len(pieces) != 1 {
		t.Errorf("the callback was called %d times, want once", len(pieces))
	}
	if got := strings.Join(pieces, ""); response.Text != got {
		t.Errorf("response has %q, but %q had arrived", response.Text, got)
	}
	if response.ID != "stop-1" {
		t.Errorf("response ID %q", response.ID)
	}
	answer(ctx, t, e, chat("stop-2", "forests")) // the engine goes on working
}

func checkCancelledBefore(ctx context.Context, t testing.TB, e engines.Engine) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	response, err := e.Generate(ctx, chat("cancel-1", "roads"), func(piece string) error {
		t.Errorf("piece %q of a cancelled request", piece)
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v does not wrap context.Canceled", err)
	}
	if response.Text != "" {
		t.Errorf("response has text %q", response.Text)
	}
}

// checkCancelledDuring: a cancellation between two pieces keeps what had come and lets no more through.
func checkCancelledDuring(ctx context.Context, t testing.TB, e engines.Engine) {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var pieces []string
	response, err := e.Generate(ctx, chat("cancel-2", "bridges"), func(piece string) error {
		pieces = append(pieces, piece)
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, engines.ErrInterrupted) {
		t.Errorf("error %v does not wrap context.Canceled and ErrInterrupted", err)
	}
	if len(pieces) != 1 {
		t.Errorf("%d pieces after the cancellation", len(pieces)-1)
	}
	if got := strings.Join(pieces, ""); response.Text != got {
		t.Errorf("response has %q, but %q had arrived", response.Text, got)
	}
	answer(outer, t, e, chat("cancel-3", "bridges"))
}

// checkConcurrent: requests at the same time get their own answers. If the engine is deterministic, these are the
// answers that the same chats get alone.
func checkConcurrent(ctx context.Context, t testing.TB, e engines.Engine) {
	subjects := []string{"iron", "copper", "silver", "gold", "tin", "lead", "zinc", "nickel"}
	alone := make([]string, len(subjects))
	deterministic := true
	for i, subject := range subjects {
		first, _ := answer(ctx, t, e, chat("", subject))
		second, _ := answer(ctx, t, e, chat("", subject))
		alone[i] = first.Text
		deterministic = deterministic && first.Text == second.Text
	}
	var wait sync.WaitGroup
	for i, subject := range subjects {
		wait.Go(func() {
			var got strings.Builder
			id := "together-" + subject
			response, err := e.Generate(ctx, chat(id, subject), func(piece string) error {
				got.WriteString(piece)
				return nil
			})
			switch {
			case err != nil:
				t.Errorf("%s: %v", id, err)
			case response.ID != id:
				t.Errorf("%s: response ID %q", id, response.ID)
			case got.String() != response.Text:
				t.Errorf("%s: the pieces make %q, the response has %q", id, got.String(), response.Text)
			case deterministic && response.Text != alone[i]:
				t.Errorf("%s: answer %q, alone it was %q", id, response.Text, alone[i])
			}
		})
	}
	wait.Wait()
}
