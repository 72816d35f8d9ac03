package llamacpp

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/ragpilot/ragpilot/engines/openai"
)

// Defaults of [Config].
const (
	DefaultSimilarity  = 0.10 // as llama-server's
	DefaultMaxRequests = 4096
	DefaultPatience    = 2 * time.Second
	DefaultSlotBytes   = 4 << 30
)

// Config describes one llama-server. Only Server.BaseURL is needed.
type Config struct {
	// Server says how chats are sent, see [openai.Config]. Its BaseURL may end in /v1 or not. Differing from there, IDs is
	// IDNowhere by default, because llama-server takes no request ID, and Label "llama.cpp:" and the URL. With an HTTPClient
	// whose Transport is of another type than *http.Transport, the server is asked for its process before each request.
	Server openai.Config

	// Similarity is the server's --slot-prompt-similarity: the part of a prompt that a slot must hold to be chosen for it by the
	// server, where requests are not pinned. 0: DefaultSimilarity; negative: never, the server was started with 0.
	Similarity float64
	// HostCache says that the server has a host prompt cache (--cache-ram, on by default), so that what a slot
	// loses is reported as Moved to [HostTier] where the server saves it first. Without it a loss is a loss. What the host
	// cache drops is not reported. It is switched on by itself for servers that empty their idle slots.
	HostCache bool
	// Unpinned leaves the choice of a slot to the server: for one that others use too, since a request waits for the slot it
	// is pinned to. Requests are pinned if this is false, except where the server empties idle slots.
	Unpinned bool

	// SlotDir switches the disk tier on: the folder that the server was started with as --slot-save-path, readable and writable here.
	// It is made with mode 0700 if it is not there. The server makes the slot files as its own user, with what its umask leaves
	// of 0666; where this process may, it makes that 0600. A folder that anyone may write to is an error, and so is one that
	// another process uses. What is in the files is as private as the prompts. See the package's documentation.
	SlotDir string
	// SlotBytes bounds the slot files in SlotDir; while one is saved it may be exceeded by that one. 0: DefaultSlotBytes.
	SlotBytes int64

	// Contexts are slot files that ragpilot compress --format llama-slot has written, by the names that requests use: see [Engine.Generate].
	// They must lie in the folder of the server's --slot-save-path, and their notes beside them. What a file has is checked before the
	// server sees it: its checksum, the number of slots, and the model where its file can be read here.
	Contexts map[string]string

	// MaxRequests bounds the served requests whose tokens are followed, about 100 bytes each. 0: DefaultMaxRequests.
	MaxRequests int
	// Patience bounds what is asked of the server before each request. When it has run out the request is sent
	// without a prediction. 0: DefaultPatience.
	Patience time.Duration
	// OnPredict gets the prediction of each request just before it is sent, in the goroutine of Generate. It must not block;
	// it is called concurrently. nil: nothing is called.
	OnPredict func(Prediction)
}

// withDefaults returns a copy of c with every optional field set, or an error that names the first bad field. Fields of
// c.Server are left to package openai.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Similarity != c.Similarity || c.Similarity >= 1:
		return c, fmt.Errorf("llamacpp: Config.Similarity %v is not below 1", c.Similarity)
	case c.MaxRequests < 0:
		return c, fmt.Errorf("llamacpp: Config.MaxRequests %d is negative", c.MaxRequests)
	case c.SlotBytes < 0:
		return c, fmt.Errorf("llamacpp: Config.SlotBytes %d is negative", c.SlotBytes)
	case c.Patience < 0:
		return c, fmt.Errorf("llamacpp: Config.Patience %v is negative", c.Patience)
	}
	c.Similarity = max(cmp.Or(c.Similarity, DefaultSimilarity), 0)
	c.MaxRequests, c.SlotBytes = cmp.Or(c.MaxRequests, DefaultMaxRequests), cmp.Or(c.SlotBytes, DefaultSlotBytes)
	c.Patience = cmp.Or(c.Patience, DefaultPatience)
	if c.OnPredict == nil {
		c.OnPredict = func(Prediction) {}
	}
	if c.Server.Now == nil {
		c.Server.Now = time.Now
	}
	c.Server.IDs = cmp.Or(c.Server.IDs, openai.IDNowhere)
	if u, err := url.Parse(c.Server.BaseURL); err == nil && c.Server.Label == "" {
		c.Server.Label = "llama.cpp:" + u.Redacted()
	}
	return c, nil
}

// Connections are a server's threads in earlier releases, idle ones too: there are few.
const (
	looks  = 4  // requests that ask the server something at a time
	pooled = 16 // idle connections that an engine keeps
)

// newHTTPClient returns the client of an engine that was given none. llama-server says that it closes a connection after
// 5 s without a request; this side leaves first.
func newHTTPClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = pooled
	transport.IdleConnTimeout = 4 * time.Second
	transport.DisableCompression = true
	return &http.Client{Transport: transport}
}

// telling reports whether a client's connections can be seen as they are made.
func telling(c *http.Client) bool {
	_, ok := c.Transport.(*http.Transport)
	return ok || c.Transport == nil
}
