package memory

import (
	"errors"
	"net/url"
	"strings"
)

// Values of [EmbedderSetting.Value], beside "lexical", minilm:DIR and the URL of a server.
const (
	AutoEmbedder   = "auto"
	MiniLMEmbedder = "minilm"
)

// wantEmbedder says what a value may be.
const wantEmbedder = "want auto, minilm, minilm:DIR, lexical, or the http or https URL of a server"

// EmbedderSetting names an embedder by a string, as --memory-embedder of the commands does: for programs whose users choose one. The zero
// EmbedderSetting is [AutoEmbedder].
type EmbedderSetting struct {
	// Value is auto, minilm, minilm:DIR, lexical, or the URL of a server that answers /v1/embeddings. Empty: auto.
	Value string
	// Model is the name of the server's model, which is needed with a URL: stores record it.
	Model string
	// Key is the server's; empty: it wants none.
	Key string
}

// Dir returns the folder of minilm:DIR.
func (s EmbedderSetting) Dir() (dir string, ok bool) {
	if dir, ok = strings.CutPrefix(s.Value, MiniLMEmbedder+":"); !ok {
		return "", false
	}
	return dir, true
}

// Shown is the value for messages, without what may be a password.
func (s EmbedderSetting) Shown() string {
	if strings.Contains(s.Value, "@") {
		return "[redacted]"
	}
	return s.Value
}

// Server reports whether the value is the URL of a server.
func (s EmbedderSetting) Server() bool {
	return strings.HasPrefix(s.Value, "http://") || strings.HasPrefix(s.Value, "https://")
}

// Auto reports whether memories may be searched by words instead.
func (s EmbedderSetting) Auto() bool { return s.Value == "" || s.Value == AutoEmbedder }

// InProcess reports whether the value is a model in this process.
func (s EmbedderSetting) InProcess() bool { return s.Value != lexicalOnly{}.Name() && !s.Server() }

// ErrNoEmbedderModel says that a setting with a URL has no model.
var ErrNoEmbedderModel = errors.New("want the name of the server's model")

// Check says what is wrong with the value. The error does not show it: a URL may hold a password.
func (s EmbedderSetting) Check() error {
	switch s.Value {
	case "", AutoEmbedder, MiniLMEmbedder, lexicalOnly{}.Name():
		return nil
	}
	if dir, ok := s.Dir(); ok {
		if dir == "" {
			return errors.New("want minilm:DIR with a folder")
		}
		return nil
	}
	if !s.Server() {
		return errors.New(wantEmbedder)
	}
	u, err := url.Parse(s.Value)
	switch {
	case err != nil || u.Hostname() == "":
		return errors.New("is not the URL of a server")
	case u.User != nil:
		return errors.New("must have no user: the key is a setting of its own")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("must have no query and no fragment")
	}
	return nil
}
