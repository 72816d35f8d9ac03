package elastic

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/elastic/elastic-transport-go/v8/elastictransport"
	"github.com/elastic/elastic-transport-go/v8/elastictransport/version"
	"go.opentelemetry.io/otel/trace"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/retriever/internal/remote"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Embedder makes vectors. Any of langchaingo's embedders is one.
type Embedder = embed.Embedder

// Defaults of [Options].
const (
	DefaultAddress      = "http://localhost:9200"
	DefaultCandidates   = 100
	DefaultRankConstant = 60
	DefaultTimeout      = 10 * time.Second
	DefaultAttempts     = 3
	DefaultBatch        = 500
	DefaultBatchBytes   = 5 << 20
)

// maxIdleConns is how many connections to one server stay open between searches. Go's own default of 2 would make all
// others of a hundred parallel searches shake hands anew.
const maxIdleConns = 100

// Options configure an [Index]. Index is needed; the zero value of the rest is the recommended setup for a local server.
type Options struct {
	// Addresses are the servers, such as https://10.0.0.7:9200. Empty: [DefaultAddress].
	Addresses []string
	// Username and Password, or APIKey (as the server gives it, in base64), are sent with each request.
	Username, Password, APIKey string
	// TLS is for servers whose certificate the system does not know. Nil: the system's settings.
	TLS *tls.Config
	// Client is a connection to share, in place of Addresses, credentials and TLS, such as a client of go-elasticsearch. Turn
	// its own retries off (elasticsearch.Config.DisableRetry): it would send writes again as well. Close leaves it open.
	Client Client

	// Index is the name of an alias, as [Index.Create] makes it, or of an index.
	Index string
	// Embedder makes the vectors. Nil: words alone are compared.
	Embedder Embedder
	// Layout says where in the index a document stands.
	Layout Layout

	// Mode says what a search compares. store.Auto is Hybrid with an embedder and Lexical without. Lexical is BM25, Dense
	// the server's approximate search. Hybrid fuses by reciprocal ranks: a hit scores the sum of 1/(RankConstant+rank)
	// over the results that it is in, with ranks from 1 (Cormack, Clarke and Büttcher, SIGIR 2009).
	Mode store.Mode
	// Candidates is how many hits of each kind a hybrid search fuses, and how many vectors each shard compares at least;
	// or K if that is more. 0: [DefaultCandidates].
	Candidates int
	// RankConstant damps the first ranks in a hybrid search. 0: [DefaultRankConstant].
	RankConstant int
	// Filter restricts every search, beside the query's own filter. It is in the server's terms and may use all that
	// the server can do: what encodes to a JSON object, such as a map, a json.RawMessage or a *types.Query of
	// go-elasticsearch. It is read by [Open]. Nil, or a nil pointer: none.
	Filter any
	// Passages asks for the parts of each text that match the question.
	Passages Passages

	// Timeout bounds each call, retries included, if its context has no sooner end. 0: [DefaultTimeout]; below 0:
	// only the context counts. [Index.Upsert] bounds each batch, [Index.Rebuild] each step of its own.
	Timeout time.Duration
	// Attempts bounds how often a read is sent while the server is unavailable. 0: [DefaultAttempts]; 1: no retries.
	Attempts int
	// Batch and BatchBytes bound what [Index.Upsert] sends at a time, in documents and bytes. A larger document is sent
	// alone. 0: [DefaultBatch] and [DefaultBatchBytes].
	Batch, BatchBytes int

	// Tracer gets a span for each call. Nil: no spans.
	Tracer trace.TracerProvider
}

// Passages says which parts of a text come back beside it, in the hit's metadata at [KeyPassages]. The text itself stays
// whole: a block that depends on the question is another one each time, and no engine has its prefix.
type Passages struct {
	// Count is how many, at most. 0: none.
	Count int
	// Characters is about how long one is. 0: 150.
	Characters int
}

// KeyPassages holds, in a hit's metadata, the passages of its text that match the question, best first: a []any of strings.
const KeyPassages = "passages"

// maxCandidates is the most that a server compares.
const maxCandidates = 10_000

// withDefaults returns a checked copy of o with all fields set.
func (o Options) withDefaults() (Options, error) {
	layout := o.Layout.complete()
	var filter error
	if o.Filter, filter = encoded(o.Filter); filter != nil {
		filter = fmt.Errorf("Options.Filter %w", filter)
	}
	if v := reflect.ValueOf(o.Client); v.Kind() == reflect.Pointer && v.IsNil() { // a variable that holds no client
		o.Client = nil
	}
	o.Candidates = cmp.Or(o.Candidates, DefaultCandidates)
	o.RankConstant = cmp.Or(o.RankConstant, DefaultRankConstant)
	o.Passages.Characters = cmp.Or(o.Passages.Characters, 150)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Attempts = cmp.Or(o.Attempts, DefaultAttempts)
	o.Batch = cmp.Or(o.Batch, DefaultBatch)
	o.BatchBytes = cmp.Or(o.BatchBytes, DefaultBatchBytes)
	if o.Client == nil && len(o.Addresses) == 0 {
		o.Addresses = []string{DefaultAddress}
	}
	if o.Mode == store.Auto {
		o.Mode = store.Lexical
		if o.Embedder != nil {
			o.Mode = store.Hybrid
		}
	}
	return o, errors.Join(o.checkServer(), o.checkSearch(), layout, filter)
}

func (o Options) checkServer() error {
	credentials := o.Username != "" || o.Password != "" || o.APIKey != ""
	switch {
	case strings.TrimSpace(o.Index) == "" || strings.ContainsAny(o.Index, ",*?/"):
		return fmt.Errorf("Options.Index = %q, want the name of one index or alias", o.Index)
	case o.Client != nil && (len(o.Addresses) > 0 || credentials || o.TLS != nil):
		return errors.New("Options.Client is set, and Addresses, credentials or TLS as well: the client has its own")
	case o.APIKey != "" && o.Username != "":
		return errors.New("Options.APIKey and Options.Username are set, want one of them")
	}
	return nil
}

func (o Options) checkSearch() error {
	switch {
	case o.Mode < store.Auto || o.Mode > store.Hybrid:
		return fmt.Errorf("Options.Mode = %v is unknown", o.Mode)
	case o.Mode != store.Lexical && o.Embedder == nil:
		return errors.New("Options.Embedder is nil, and the search needs vectors")
	case o.Candidates > maxCandidates:
		return fmt.Errorf("Options.Candidates = %d, want at most %d", o.Candidates, maxCandidates)
	}
	return remote.CheckNumbers(
		remote.Number{Name: "Candidates", Value: o.Candidates}, remote.Number{Name: "RankConstant", Value: o.RankConstant},
		remote.Number{Name: "Passages.Count", Value: o.Passages.Count}, remote.Number{Name: "Passages.Characters", Value: o.Passages.Characters},
		remote.Number{Name: "Attempts", Value: o.Attempts}, remote.Number{Name: "Batch", Value: o.Batch},
		remote.Number{Name: "BatchBytes", Value: o.BatchBytes})
}

// connect makes a client, and the function that ends its connections. The client itself sends each request once.
func (o Options) connect() (Client, func(), error) {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		transport = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	transport = transport.Clone()
	transport.MaxIdleConnsPerHost = maxIdleConns
	transport.MaxIdleConns = 0 // as many as all servers have
	if o.TLS != nil {
		transport.TLSClientConfig = o.TLS.Clone()
	}
	urls := make([]*url.URL, len(o.Addresses))
	for i, address := range o.Addresses {
		var err error
		if urls[i], err = url.Parse(strings.TrimRight(address, "/")); err != nil {
			return nil, nil, err
		}
	}
	if first := urls[0].User; first != nil { // the other servers' as well, but for those that name their own
		o.Username = first.Username()
		o.Password, _ = first.Password()
	}
	client, err := elastictransport.NewClient(
		elastictransport.WithURLs(urls...), elastictransport.WithTransport(transport), elastictransport.WithDisableRetry(),
		elastictransport.WithBasicAuth(o.Username, o.Password), elastictransport.WithAPIKey(o.APIKey), // a key goes first
		elastictransport.WithUserAgent("ragpilot elastic-transport-go/"+version.Transport),
	)
	if err != nil {
		return nil, nil, err
	}
	return client, transport.CloseIdleConnections, nil
}
