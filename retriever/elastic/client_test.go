package elastic_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/elastic/elastic-transport-go/v8/elastictransport"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/ragpilot/ragpilot/retriever/elastic"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// TestConnection: what a server sees of the client that Open makes.
func TestConnection(t *testing.T) {
	var seen *http.Request
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r
		answer(w, http.StatusOK, hitsOf(1))
	}))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	host := strings.TrimPrefix(server.URL, "https://")
	for want, o := range map[string]elastic.Options{
		"":                   {Addresses: []string{server.URL}},
		"Basic dTpw":         {Addresses: []string{server.URL + "/proxy/"}, Username: "u", Password: "p"}, // u:p
		"Basic bmFtZTp3b3Jk": {Addresses: []string{"https://name:word@" + host}},
		"APIKey a2V5":        {Addresses: []string{server.URL}, APIKey: "a2V5"},
	} {
		o.Index, o.TLS = "100% a#b", &tls.Config{RootCAs: roots}
		var none *elastictransport.Client
		o.Client = none // as a variable that holds no client
		if _, err := open(t, o).Search(t.Context(), otter); err != nil {
			t.Fatal(err)
		}
		path := "/100%25%20a%23b/_search"
		if strings.HasSuffix(o.Addresses[0], "/proxy/") {
			path = "/proxy" + path
		}
		if got := seen.Method + " " + seen.RequestURI; got != "POST "+path+"?allow_partial_search_results=false" {
			t.Errorf("request %s, want that of %s", got, path)
		}
		const json = "application/vnd.elasticsearch+json;compatible-with=8"
		for key, value := range map[string]string{
			"Authorization": want, "Accept": json, "Content-Type": json, "X-Elastic-Client-Meta": "",
		} {
			if got := seen.Header.Get(key); got != value {
				t.Errorf("%s: %q, want %q", key, got, value)
			}
		}
		if got := seen.UserAgent(); !strings.HasPrefix(got, "ragpilot ") {
			t.Errorf("User-Agent: %q", got)
		}
	}
}

// TestCredentialsOfTheFirst are sent to the servers that name none.
func TestCredentialsOfTheFirst(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		seen = append(seen, user+":"+password)
		answer(w, http.StatusOK, hitsOf(1))
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	x := open(t, elastic.Options{Index: "docs", Addresses: []string{"http://a:b@" + host, server.URL, "http://c:d@" + host}})
	for range 3 {
		if _, err := x.Search(t.Context(), otter); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(seen)
	if want := []string{"a:b", "a:b", "c:d"}; !slices.Equal(seen, want) {
		t.Errorf("credentials %q, want %q", seen, want)
	}
}

// roundTripper is the server behind a client.
type roundTripper struct{ elastic.Client }

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r.Perform(req) }

// TestSpansOfTheClient: a client that makes spans makes one of each request, below that of the call.
func TestSpansOfTheClient(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	client, err := elastictransport.NewClient(
		elastictransport.WithURLs(&url.URL{Scheme: "http", Host: "localhost"}),
		elastictransport.WithTransport(roundTripper{&fakeServer{status: http.StatusOK, body: hitsOf(1)}}),
		elastictransport.WithInstrumentation(elastictransport.NewOtelInstrumentation(provider, true, "1")),
	)
	if err != nil {
		t.Fatal(err)
	}
	x := open(t, elastic.Options{Client: client, Index: "docs", Tracer: provider})
	if _, err := x.Search(t.Context(), store.Query{Text: "otter", K: 1}); err != nil {
		t.Fatal(err)
	}
	got := spans.Ended()
	if len(got) != 2 || got[0].Name() != "search" || got[1].Name() != "search docs" ||
		got[0].Parent().SpanID() != got[1].SpanContext().SpanID() {
		t.Fatalf("spans %v, want the client's below ours", got)
	}
	attributes := map[string]string{}
	for _, a := range got[0].Attributes() {
		attributes[string(a.Key)] = a.Value.String()
	}
	for key, want := range map[string]string{
		"db.system": "elasticsearch", "db.operation": "search", "db.elasticsearch.path_parts.index": "docs",
		"url.full": "http://localhost/docs/_search?allow_partial_search_results=false",
	} {
		if attributes[key] != want {
			t.Errorf("%s = %q, want %q", key, attributes[key], want)
		}
	}
	if !strings.Contains(attributes["db.statement"], `"query":"otter"`) {
		t.Errorf("db.statement = %q, want the search", attributes["db.statement"])
	}
}
