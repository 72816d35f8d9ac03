//go:build unix

package elastic_test

import (
	"context"
	"errors"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/ragpilot/ragpilot/internal/testkit/storetest"
	"github.com/ragpilot/ragpilot/retriever/elastic"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// within a minute nothing here has to wait; what takes longer hangs.
const patience = time.Minute

// TestServerFails: the server's process first stops and keeps its connections, and then is killed, each time when it has a
// request and has not answered it. A call ends with its context, or with an error that says what happened.
func TestServerFails(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server, which takes it some seconds")
	}
	storetest.Elasticsearch(t)
	server := storetest.Start(t, "elasticsearch")
	x := open(t, elastic.Options{Addresses: []string{"http://" + server.Addr}, Index: "killed", Timeout: -1}) // only the context ends a call
	if err := x.Create(t.Context(), elastic.Schema{Settings: oneShard}); err != nil {
		t.Fatal(err)
	}
	upsert := func(ctx context.Context) error {
		return x.Upsert(ctx, []store.Document{{ID: "a", Text: "The otter swims."}})
	}
	search := func(ctx context.Context) error {
		_, err := x.Search(ctx, otter)
		return err
	}
	if err := upsert(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// trapped calls sent when a stopped server has got a request.
	trapped := func(ctx context.Context, sent func()) context.Context {
		server.Halt(t)
		return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { sent() }})
	}
	for name, call := range map[string]func(context.Context) error{"search": search, "upsert": upsert} {
		called, end := context.WithCancel(ctx)
		if err := call(trapped(called, end)); !errors.Is(err, context.Canceled) || ctx.Err() != nil {
			t.Errorf("%s of a server that hangs: %v (context: %v), want Canceled", name, err, ctx.Err())
		}
		server.Resume(t)
		if err := call(ctx); err != nil {
			t.Errorf("%s of a server that goes on: %v", name, err)
		}
	}
	if err := search(trapped(ctx, func() { server.Kill(t) })); !errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
		t.Errorf("search of a server that is killed: %v (context: %v), want ErrUnavailable", err, ctx.Err())
	}
	for name, call := range map[string]func(context.Context) error{"search": search, "upsert": upsert} {
		if err := call(ctx); !errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil || !strings.Contains(err.Error(), x.Name()) {
			t.Errorf("%s afterwards: %v (context: %v), want ErrUnavailable that names the index", name, err, ctx.Err())
		}
	}
}
