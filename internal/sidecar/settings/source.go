package settings

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/ragpilot/ragpilot/contextpilot/profile"
)

// Source says where a configuration comes from. Later layers win: [Default], File, Env, Flags.
type Source struct {
	// File is a YAML file, see [Decode]; empty: none. Names of files in it that are not absolute are relative to its
	// folder.
	File string
	// Env looks up the environment variables of the reference, CONTEXTPILOT_*, and those of OpenTelemetry, OTEL_*; nil:
	// none. An empty one counts as not set.
	Env func(name string) (string, bool)
	// Flags changes what flags say, and the RAGPILOT_* variables that stand for them; nil: none.
	Flags func(*Config) error
	// Warn receives what is valid and may surprise, beside [Config.Warnings]; nil: none.
	Warn func(text string)
}

// maxFile bounds a configuration file, in bytes; one with 10,000 keys is smaller.
const maxFile = 1 << 20

// Load puts a configuration together, reads its secrets and checks it. It may be called again to reload.
func (s Source) Load() (Config, error) {
	c := Default()
	var err error
	if s.File != "" {
		if c, err = readFile(s.File, c); err != nil {
			return c, err
		}
		if c.holdsSecret() && readableByAll(s.File) {
			s.warn(fmt.Sprintf("all users of this machine can read %q, which holds keys: chmod 600", s.File))
		}
	}
	if s.Env != nil {
		if err = c.applyEnv(s.Env); err != nil {
			return c, err
		}
	}
	if s.Flags != nil {
		if err = s.Flags(&c); err != nil {
			return c, err
		}
	}
	s.warn(c.exposed()...)
	if c, err = c.ReadSecrets(); err != nil {
		return c, err
	}
	return c, c.Validate()
}

func (s Source) warn(texts ...string) {
	for _, text := range texts {
		if s.Warn != nil {
			s.Warn(text)
		}
	}
}

func readFile(name string, base Config) (Config, error) {
	text, err := readBounded(name, maxFile)
	if err != nil {
		return base, fmt.Errorf("%w: %w", ErrBadConfig, err)
	}
	c, err := Decode(text, base)
	if err != nil {
		return base, fmt.Errorf("%s: %w", name, err)
	}
	dir := filepath.Dir(name)
	for _, f := range c.secretFields() {
		*f.file = under(dir, *f.file)
	}
	for _, path := range []*string{&c.StateDir, &c.Memory.Dir, &c.TLS.Cert, &c.TLS.Key, &c.TLS.ClientCA} {
		*path = under(dir, *path)
	}
	c.Memory.Embedder = c.Memory.embedderUnder(dir)
	if !slices.Contains(profile.Names(), c.Profile) {
		c.Profile = under(dir, c.Profile)
	}
	return c, nil
}

// readBounded reads a file of at most that many bytes.
func readBounded(name string, most int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("file %q has more than %d bytes", name, most)
	}
	return text, err
}

func under(dir, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// applyEnv takes over the reference's variables.
func (c *Config) applyEnv(lookup func(string) (string, bool)) error {
	for _, v := range []struct {
		name string
		into any
	}{
		{"CONTEXTPILOT_INFER_API_URL", &c.InferAPIURL},
		{"CONTEXTPILOT_STATELESS_MODE", &c.Stateless},
		{"CONTEXTPILOT_MODEL_NAME", &c.Model},
		{"CONTEXTPILOT_CLOUD_PROVIDER", &c.CloudProvider},
		{"CONTEXTPILOT_CLOUD_API_KEY", &c.CloudAPIKey},
		{"CONTEXTPILOT_EXTENDED_CACHE", &c.ExtendedCache},
		{"CONTEXTPILOT_MAX_TOKENS", &c.MaxTokens},
	} {
		value, _ := lookup(v.name)
		if value == "" {
			continue
		}
		var err error
		want := ""
		switch into := v.into.(type) {
		case *string:
			*into = value
		case *Secret:
			*into, c.CloudAPIKeyFile = Secret(value), ""
		case *bool:
			*into, err = strconv.ParseBool(value)
			want = "true or false, 1 or 0"
		case *int:
			*into, err = strconv.Atoi(value)
			want = "a whole number"
		}
		if err != nil {
			return fmt.Errorf("%w: %s %q: want %s", ErrBadConfig, v.name, value, want)
		}
	}
	return c.Trace.applyEnv(lookup)
}
