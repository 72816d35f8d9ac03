package settings

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
)

// Secret is a text that no formatting shows: fmt, slog, JSON and YAML write "[redacted]" in its place.
type Secret string

const hidden = "[redacted]"

// Reveal returns the text.
func (s Secret) Reveal() string { return string(s) }

// String returns a placeholder, or nothing if there is no secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format writes the placeholder for every verb, also those that do not ask for String.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText is what JSON and YAML show.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue is what slog shows.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// maxSecret bounds a file with a key, in bytes; no provider's key is near it.
const maxSecret = 8 << 10

// secretField is a setting that can hold a secret, or name the file that does.
type secretField struct {
	name  string
	value *Secret
	file  *string
}

// secretFields are all of them.
func (c *Config) secretFields() []secretField {
	fields := append(make([]secretField, 0, 5+len(c.Keys)+len(c.Engines)),
		secretField{"cloud_api_key", &c.CloudAPIKey, &c.CloudAPIKeyFile},
		secretField{"infer_api_key", &c.InferAPIKey, &c.InferAPIKeyFile},
		secretField{"cache_salt_key", &c.CacheSaltKey, &c.CacheSaltKeyFile},
		secretField{"trace.headers", &c.Trace.Headers, &c.Trace.HeadersFile},
		secretField{"memory.embedder_key", &c.Memory.EmbedderKey, &c.Memory.EmbedderKeyFile},
	)
	for i := range c.Keys {
		fields = append(fields, secretField{fmt.Sprintf("keys[%d]", i), &c.Keys[i].Key, &c.Keys[i].File})
	}
	for i := range c.Engines {
		fields = append(fields, secretField{fmt.Sprintf("engines[%d].api_key", i), &c.Engines[i].APIKey, &c.Engines[i].APIKeyFile})
	}
	return fields
}

// ReadSecrets returns c with every key that is named by a file read from it. The file's name is cleared, so that reading
// twice is reading once. Errors name the field and the file.
func (c Config) ReadSecrets() (Config, error) {
	c = c.clone()
	for _, f := range c.secretFields() {
		if err := readSecret(f.name, f.value, f.file); err != nil {
			return c, err
		}
	}
	return c, nil
}

// exposed says which files with secrets all users of this machine can read.
func (c Config) exposed() []string {
	var w []string
	for _, f := range c.secretFields() {
		if *f.file != "" && readableByAll(*f.file) {
			w = append(w, fmt.Sprintf("%s: all users of this machine can read its file %q: chmod 600", f.name, *f.file))
		}
	}
	return w
}

// holdsSecret reports whether a secret itself is set, not only the name of its file.
func (c Config) holdsSecret() bool {
	return slices.ContainsFunc(c.secretFields(), func(f secretField) bool { return *f.value != "" })
}

// readableByAll reports whether a file is. Windows has other rights, which Go does not show.
func readableByAll(name string) bool {
	info, err := os.Stat(name)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o004 != 0
}

func readSecret(field string, into *Secret, name *string) error {
	if *name == "" {
		return nil
	}
	if *into != "" {
		return fmt.Errorf("%w: %s: both the key and its file %q are given", ErrBadConfig, field, *name)
	}
	text, err := readBounded(*name, maxSecret)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrBadConfig, field, err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return fmt.Errorf("%w: %s: file %q is empty", ErrBadConfig, field, *name)
	}
	*into, *name = Secret(secret), ""
	return nil
}

// redacted hides the password of a URL, and all of what is no URL but may hold one.
func redacted(address string) string {
	if !strings.Contains(address, "@") {
		return address
	}
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return hidden
	}
	return u.Redacted()
}
