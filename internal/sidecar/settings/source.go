package settings

import (
	"errors"
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
	file, err := os.Open(name)
	if err != nil {
		return base, fmt.Errorf("%w: %w", ErrBadConfig, err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return base, fmt.Errorf("%w: %w", ErrBadConfig, err)
	}
	if len(text) > maxFile {
		return base, fmt.Errorf("%w: %s has more than %d bytes", ErrBadConfig, name, maxFile)
	}
	c, err := Decode(text, base)
	if err != nil {
		return base, fmt.Errorf("%s: %w", name, err)
	}
	dir := filepath.Dir(name)
	for _, path := range []*string{&c.InferAPIKeyFile, &c.CloudAPIKeyFile, &c.CacheSaltKeyFile, &c.Trace.HeadersFile, &c.Memory.EmbedderKeyFile, &c.StateDir, &c.Memory.Dir, &c.TLS.Cert, &c.TLS.Key, &c.TLS.ClientCA} {
		*path = under(dir, *path)
	}
	c.Memory.Embedder = c.Memory.embedderUnder(dir)
	if !slices.Contains(profile.Names(), c.Profile) {
		c.Profile = under(dir, c.Profile)
	}
	for i := range c.Keys {
		c.Keys[i].File = under(dir, c.Keys[i].File)
	}
	for i := range c.Engines {
		c.Engines[i].APIKeyFile = under(dir, c.Engines[i].APIKeyFile)
	}
	return c, nil
}

func under(dir, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// applyEnv takes over the reference's variables.
func (c *Config) applyEnv(lookup func(string) (string, bool)) error {
	get := func(name string, set func(value string) error) error {
		value, _ := lookup(name)
		if value == "" {
			return nil
		}
		if err := set(value); err != nil {
			return fmt.Errorf("%w: %s %q: %w", ErrBadConfig, name, value, err)
		}
		return nil
	}
	text := func(into *string) func(string) error {
		return func(value string) error { *into = value; return nil }
	}
	flag := func(into *bool) func(string) error {
		return func(value string) (err error) {
			if *into, err = strconv.ParseBool(value); err != nil {
				err = errors.New("want true or false, 1 or 0")
			}
			return err
		}
	}
	for _, v := range []struct {
		name string
		set  func(string) error
	}{
		{"CONTEXTPILOT_INFER_API_URL", text(&c.InferAPIURL)},
		{"CONTEXTPILOT_STATELESS_MODE", flag(&c.Stateless)},
		{"CONTEXTPILOT_MODEL_NAME", text(&c.Model)},
		{"CONTEXTPILOT_CLOUD_PROVIDER", text(&c.CloudProvider)},
		{"CONTEXTPILOT_CLOUD_API_KEY", func(value string) error { c.CloudAPIKey, c.CloudAPIKeyFile = Secret(value), ""; return nil }},
		{"CONTEXTPILOT_EXTENDED_CACHE", flag(&c.ExtendedCache)},
		{"CONTEXTPILOT_MAX_TOKENS", func(value string) (err error) {
			if c.MaxTokens, err = strconv.Atoi(value); err != nil {
				err = errors.New("want a whole number")
			}
			return err
		}},
	} {
		if err := get(v.name, v.set); err != nil {
			return err
		}
	}
	return c.Trace.applyEnv(lookup)
}
