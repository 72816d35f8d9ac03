package sidecar_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

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
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(text)}
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
