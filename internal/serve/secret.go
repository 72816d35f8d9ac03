package serve

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
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

// ReadSecrets returns c with every key that is named by a file read from it. The file's name is cleared, so that reading
// twice is reading once. Errors name the field and the file.
func (c Config) ReadSecrets() (Config, error) {
	c = c.clone()
	if err := readSecret("cloud_api_key", &c.CloudAPIKey, &c.CloudAPIKeyFile); err != nil {
		return c, err
	}
	if err := readSecret("infer_api_key", &c.InferAPIKey, &c.InferAPIKeyFile); err != nil {
		return c, err
	}
	if err := readSecret("cache_salt_key", &c.CacheSaltKey, &c.CacheSaltKeyFile); err != nil {
		return c, err
	}
	if err := readSecret("trace.headers", &c.Trace.Headers, &c.Trace.HeadersFile); err != nil {
		return c, err
	}
	for i := range c.Keys {
		if err := readSecret(fmt.Sprintf("keys[%d]", i), &c.Keys[i].Key, &c.Keys[i].File); err != nil {
			return c, err
		}
	}
	for i := range c.Engines {
		if err := readSecret(fmt.Sprintf("engines[%d].api_key", i), &c.Engines[i].APIKey, &c.Engines[i].APIKeyFile); err != nil {
			return c, err
		}
	}
	return c, nil
}

func readSecret(field string, into *Secret, name *string) error {
	if *name == "" {
		return nil
	}
	if *into != "" {
		return fmt.Errorf("%w: %s: both the key and its file %q are given", ErrBadConfig, field, *name)
	}
	file, err := os.Open(*name)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrBadConfig, field, err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrBadConfig, field, err)
	}
	if len(text) > maxSecret {
		return fmt.Errorf("%w: %s: file %q has more than %d bytes", ErrBadConfig, field, *name, maxSecret)
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
