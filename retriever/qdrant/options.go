package qdrant

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	api "github.com/qdrant/go-client/qdrant"
	"go.opentelemetry.io/otel/trace"

	"github.com/ragpilot/ragpilot/embed"
	"github.com/ragpilot/ragpilot/retriever/internal/remote"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Embedder makes dense vectors. Any of langchaingo's embedders is one.
type Embedder = embed.Embedder

// SparseEmbedder makes sparse vectors, for example [Words]. It is safe for concurrent use.
type SparseEmbedder interface {
	SparseDocuments(ctx context.Context, texts []string) ([]SparseVector, error)
	SparseQuery(ctx context.Context, text string) (SparseVector, error)
}

// SparseVector has Values at Indices, which are all different, and 0 elsewhere.
type SparseVector struct {
	Indices []uint32
	Values  []float32
}

// Fusion says how the server makes one result of two.
type Fusion int

// Ways to fuse.
const (
	// RRF is reciprocal rank fusion: a hit scores the sum of 1/(rank+2) over the results that it is in, with ranks from 0.
	RRF Fusion = iota
	// DBSF is distribution-based score fusion: the sum of the scores, each scaled by mean and deviation of its result.
	DBSF
)

// Defaults of [Options].
const (
	DefaultAddr            = "localhost:6334"
	DefaultSparseVector    = "words"
	DefaultCandidates      = 100
	DefaultTimeout         = 10 * time.Second
	DefaultAttempts        = 3
	DefaultBatch           = 64
	DefaultMaxMessageBytes = 64 << 20
)

// Options configure an [Index]. Collection and at least one embedder are needed; the zero value of the rest is the
// recommended setup.
type Options struct {
	// Addr is the host:port of the server's gRPC services, not of REST. Empty: [DefaultAddr].
	Addr string
	// APIKey is sent with each request. Without TLS it is sent in the clear.
	APIKey string
	// TLS encrypts the connection. Nil: no encryption.
	TLS *tls.Config
	// Client is a connection to share, in place of Addr, APIKey and TLS; Close leaves it open. It must be able to
	// receive messages of the size of K documents: gRPC's own limit is 4 MiB.
	Client *api.Client

	// Collection is the collection's name.
	Collection string
	// Embedder makes the dense vectors, Sparse the sparse ones. A search uses those that are set.
	Embedder Embedder
	Sparse   SparseEmbedder
	// Vector names the dense vector within a point. Empty: the collection's unnamed vector.
	Vector string
	// SparseVector names the sparse vector within a point. Empty: [DefaultSparseVector].
	SparseVector string
	// Layout says where in a payload a document stands.
	Layout Layout

	// Mode says what a search compares: what there are embedders for, if it is store.Auto; store.Hybrid is fused by the
	// server, as Fusion says.
	Mode   store.Mode
	Fusion Fusion
	// Candidates is how many hits of each kind a hybrid search fuses, or K and a few more if that is more.
	// 0: [DefaultCandidates].
	Candidates int
	// Filter restricts every search, beside the query's own filter. It is in the server's terms and may use all that
	// the server can do.
	Filter *api.Filter

	// Timeout bounds each call, retries included, if its context has no sooner end. 0: [DefaultTimeout]; below 0:
	// only the context counts.
	Timeout time.Duration
	// Attempts bounds how often a read is sent while the server is unavailable. 0: [DefaultAttempts]; 1: no retries.
	Attempts int
	// Batch is how many documents [Index.Upsert] embeds and sends at a time. 0: [DefaultBatch].
	Batch int
	// MaxMessageBytes bounds an answer of the server: K texts, in bytes. 0: [DefaultMaxMessageBytes].
	MaxMessageBytes int

	// Tracer gets a span for each call. Nil: no spans.
	Tracer trace.TracerProvider
}

// withDefaults returns a checked copy of o with all fields set.
func (o Options) withDefaults() (Options, error) {
	layout := o.Layout.complete()
	o.SparseVector = cmp.Or(o.SparseVector, DefaultSparseVector)
	o.Candidates = cmp.Or(o.Candidates, DefaultCandidates)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Attempts = cmp.Or(o.Attempts, DefaultAttempts)
	o.Batch = cmp.Or(o.Batch, DefaultBatch)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, DefaultMaxMessageBytes)
	if o.Mode == store.Auto {
		o.Mode = o.modeOfEmbedders()
	}
	return o, errors.Join(o.checkServer(), o.checkSearch(), layout)
}

func (o Options) modeOfEmbedders() store.Mode {
	switch {
	case o.Embedder != nil && o.Sparse != nil:
		return store.Hybrid
	case o.Sparse != nil:
		return store.Lexical
	}
	return store.Dense
}

func (o Options) server() connection {
	return connection{Addr: o.Addr, APIKey: o.APIKey, TLS: o.TLS, MaxMessageBytes: o.MaxMessageBytes}
}

func (o Options) checkServer() error {
	if strings.TrimSpace(o.Collection) == "" {
		return fmt.Errorf("Options.Collection = %q, want the name of a collection", o.Collection)
	}
	return o.server().check(o.Client)
}

func (o Options) checkSearch() error {
	switch {
	case o.Mode < store.Auto || o.Mode > store.Hybrid:
		return fmt.Errorf("Options.Mode = %v is unknown", o.Mode)
	case o.Fusion != RRF && o.Fusion != DBSF:
		return fmt.Errorf("Options.Fusion = %d is unknown", o.Fusion)
	case o.dense() && o.Embedder == nil:
		return errors.New("Options.Embedder is nil, and the search needs dense vectors")
	case o.sparse() && o.Sparse == nil:
		return errors.New("Options.Sparse is nil, and the search needs sparse vectors")
	case o.Embedder != nil && o.Sparse != nil && o.Vector == o.SparseVector:
		return fmt.Errorf("Options.SparseVector = %q is Vector as well", o.SparseVector)
	}
	return remote.CheckNumbers(
		remote.Number{Name: "Candidates", Value: o.Candidates}, remote.Number{Name: "Attempts", Value: o.Attempts},
		remote.Number{Name: "Batch", Value: o.Batch}, remote.Number{Name: "MaxMessageBytes", Value: o.MaxMessageBytes})
}

func (o Options) dense() bool  { return o.Mode == store.Dense || o.Mode == store.Hybrid }
func (o Options) sparse() bool { return o.Mode == store.Lexical || o.Mode == store.Hybrid }
