package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/elastic/elastic-transport-go/v8/elastictransport"
)

// Client sends a request, which names no server, to one of those that it knows. The clients of go-elasticsearch are such:
// *elasticsearch.Client, *elasticsearch.TypedClient and *elasticsearch.BaseClient.
type Client interface {
	Perform(*http.Request) (*http.Response, error)
}

// object is a piece of JSON.
type object = map[string]any

// mediaType asks for the JSON of version 8, which newer servers know as well.
const mediaType = "application/vnd.elasticsearch+%s;compatible-with=8"

// call is a request to the server.
type call struct {
	name   string // in the server's reference: a client's own spans have it
	method string
	path   string // without the first slash; names stand in it as they are
	query  url.Values
	body   []byte // nil: none
}

// request makes a request, of which the client sets the server.
func (c call) request(ctx context.Context) (*http.Request, error) {
	var body io.Reader
	if c.body != nil {
		body = bytes.NewReader(c.body)
	}
	u := url.URL{Scheme: "http", Path: "/" + c.path, RawQuery: c.query.Encode()}
	r, err := http.NewRequestWithContext(ctx, c.method, u.String(), body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", fmt.Sprintf(mediaType, "json"))
	switch {
	case c.name == "bulk":
		r.Header.Set("Content-Type", fmt.Sprintf(mediaType, "x-ndjson"))
	case c.body != nil:
		r.Header.Set("Content-Type", fmt.Sprintf(mediaType, "json"))
	}
	return r, nil
}

// send sends the request as go-elasticsearch's own calls are sent: with a span, if the client is configured to make some.
func (c call) send(ctx context.Context, client Client) (*http.Response, error) {
	var spans elastictransport.Instrumentation
	if i, ok := client.(elastictransport.Instrumented); ok {
		spans = i.InstrumentationEnabled()
	}
	if spans != nil {
		ctx = spans.Start(ctx, c.name)
		defer spans.Close(ctx)
	}
	r, err := c.request(ctx)
	if err != nil {
		return nil, err
	}
	if spans == nil {
		return client.Perform(r)
	}
	if index, _, _ := strings.Cut(c.path, "/"); !strings.HasPrefix(index, "_") {
		spans.RecordPathPart(ctx, "index", index)
	}
	spans.BeforeRequest(r, c.name)
	if c.body != nil {
		if body := spans.RecordRequestBody(ctx, c.name, bytes.NewReader(c.body)); body != nil {
			r.Body = body
		}
	}
	res, err := client.Perform(r)
	spans.AfterRequest(r, "elasticsearch", c.name)
	if err != nil {
		spans.RecordError(ctx, err)
	}
	return res, err
}

// exchange sends the request and reads the answer into out; nil: the answer is not read.
func (c call) exchange(ctx context.Context, client Client, bad error, out any) error {
	res, err := c.send(ctx, client)
	if err != nil {
		return unreachable(err)
	}
	defer func() {
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxErrorBytes)) // so that the connection can be used again
		_ = res.Body.Close()
	}()
	switch {
	case res.StatusCode >= http.StatusMultipleChoices:
		return answered(res, bad)
	case res.Header.Get("X-Elastic-Product") != "Elasticsearch":
		return unreachable(errors.New("the server that answers is not Elasticsearch"))
	case out == nil:
		return nil
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		return unreachable(fmt.Errorf("read the answer: %w", err)) // it ends too soon: the server, or a proxy, was killed
	}
	return nil
}
