package sidecar_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ragpilot/ragpilot/internal/testkit"
	"github.com/ragpilot/ragpilot/internal/testkit/browsertest"
)

// reply is an answer that was read to its end.
type reply struct {
	code   int
	header http.Header
	text   string
}

// request sends a request; header holds names and values in turn.
func request(t testing.TB, method, address, body string, header ...string) reply {
	t.Helper()
	code, got, text := testkit.Ask(t, http.DefaultClient, testkit.Request(t, method, address, strings.NewReader(body), header...))
	return reply{code, got, text}
}

// browse opens a page in a real browser. until waits for an expression to hold there.
func browse(t *testing.T, address string) (ctx context.Context, until func(expression string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(browsertest.Start(t), time.Minute)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate(address)); err != nil {
		t.Fatal(err)
	}
	return ctx, func(expression string) {
		t.Helper()
		for {
			ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
			if err != nil {
				t.Fatalf("%s: %v", expression, err)
			}
			if ok {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}
