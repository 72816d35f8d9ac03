package qdrant

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/ragpilot/ragpilot/internal/base/qdrantconn"
)

// Defaults of [Options].
const (
	DefaultAddr            = qdrantconn.DefaultAddr
	DefaultCollection      = "ragpilot_memory"
	DefaultTimeout         = 10 * time.Second
	DefaultAttempts        = 3
	DefaultMaxMessageBytes = 64 << 20
)

// Options configure [Open]; the zero Options are the usual ones.
type Options struct {
	// Addr is the host:port of the server's gRPC services, not of REST. Empty: [DefaultAddr].
	Addr string
	// APIKey is sent with each request. Without TLS it is sent in the clear.
	APIKey string
	// TLS encrypts the connection. Nil: no encryption.
	TLS *tls.Config
	// Client is a connection to share, in place of Addr, APIKey and TLS; Close leaves it open. It must be able to receive
	// messages of 500 memories with their vectors: gRPC's own limit is 4 MiB.
	Client *api.Client

	// Collection is the name of the collection of history and messages, and what the names of those of memories begin
	// with. Stores with different names share nothing. Empty: [DefaultCollection].
	Collection string
	// Timeout bounds each request to the server. 0: [DefaultTimeout]; below 0: only the context counts.
	Timeout time.Duration
	// Attempts bounds how often a request is sent while the server is unavailable. 0: [DefaultAttempts]; 1: no retries.
	Attempts int
	// MaxMessageBytes bounds an answer of the server: the largest memory, with its words and its vector, has to fit in. 0:
	// [DefaultMaxMessageBytes].
	MaxMessageBytes int
}

// withDefaults returns a checked copy of o with all fields set.
func (o Options) withDefaults() (Options, error) {
	o.Collection = cmp.Or(o.Collection, DefaultCollection)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Attempts = cmp.Or(o.Attempts, DefaultAttempts)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, DefaultMaxMessageBytes)
	switch {
	case strings.TrimSpace(o.Collection) == "":
		return o, fmt.Errorf("Options.Collection = %q, want the name of a collection", o.Collection)
	case o.Attempts < 0:
		return o, fmt.Errorf("Options.Attempts = %d, want at least 0", o.Attempts)
	case o.MaxMessageBytes < 0:
		return o, fmt.Errorf("Options.MaxMessageBytes = %d, want at least 0", o.MaxMessageBytes)
	}
	return o, o.server().Check(o.Client)
}

func (o Options) server() qdrantconn.Config {
	return qdrantconn.Config{Addr: o.Addr, APIKey: o.APIKey, TLS: o.TLS, MaxMessageBytes: o.MaxMessageBytes}
}
