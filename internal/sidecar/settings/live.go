package settings

import (
	"log/slog"
	"reflect"
	"slices"
	"sync/atomic"
)

// Reloadable is the part of a [Config] that a running server takes over on [Server.Reload].
type Reloadable struct {
	LogLevel string
	Keys     []Key // not to be modified
	Limits   Limits
	HoldOut  float64
	Shadow   bool
	Engines  []Engine // not to be modified; each has a name
}

// Live holds the present [Reloadable]. Ask it once for each request and not once for all. It is a [slog.Leveler] of the
// present log level. Safe for concurrent use.
type Live struct{ now atomic.Pointer[Reloadable] }

// NewLive returns a Live that holds what cfg says.
func NewLive(cfg Config) *Live {
	l := new(Live)
	l.Store(cfg)
	return l
}

// Load returns the present values. It does not lock.
func (l *Live) Load() Reloadable { return *l.now.Load() }

// Level returns the present log level.
func (l *Live) Level() slog.Level {
	switch l.now.Load().LogLevel {
	case "debug":
		return slog.LevelDebug
	case "warning":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

// Store makes the reloadable part of a configuration the present one.
func (l *Live) Store(c Config) {
	l.now.Store(&Reloadable{
		LogLevel: c.LogLevel, Keys: slices.Clone(c.Keys), Limits: c.Limits, HoldOut: c.HoldOut, Shadow: c.Shadow, Engines: named(c.Engines),
	})
}

// TakeOver returns c with those fields of next that need no restart, the names of those that differ, and the names of
// the others that differ.
func (c Config) TakeOver(next Config) (taken Config, changed, restart []string) {
	taken, next = c.clone(), next.clone()
	taken.LogLevel, taken.Keys, taken.HoldOut, taken.Shadow, taken.Engines = next.LogLevel, next.Keys, next.HoldOut, next.Shadow, next.Engines
	taken.AdminHosts, taken.AllowedHosts, taken.AllowedOrigins = next.AdminHosts, next.AllowedHosts, next.AllowedOrigins
	taken.AllowAnonymous = next.AllowAnonymous
	taken.Limits = next.Limits
	taken.Limits.MemoryBytes = c.Limits.MemoryBytes
	taken.Limits.HeaderBytes, taken.Limits.Sessions, taken.Limits.Tenants = c.Limits.HeaderBytes, c.Limits.Sessions, c.Limits.Tenants
	if c.TLS.On() && next.TLS.On() {
		taken.TLS.Cert, taken.TLS.Key = next.TLS.Cert, next.TLS.Key
	}
	changed = differences(reflect.ValueOf(c), reflect.ValueOf(taken), "")
	restart = differences(reflect.ValueOf(taken), reflect.ValueOf(next), "")
	if c.ExtProcAddr != "" && taken.Limits.BodyBytes != c.Limits.BodyBytes { // the main listener's bodies only
		restart = append(restart, "limits.body_bytes of ext_proc_addr")
	}
	return taken, changed, restart
}

// differences names the fields that differ; those of nested structs as outer.inner.
func differences(a, b reflect.Value, prefix string) []string {
	var names []string
	for i := range a.NumField() {
		name := prefix + a.Type().Field(i).Tag.Get("yaml")
		x, y := a.Field(i), b.Field(i)
		switch {
		case x.Kind() == reflect.Struct:
			names = append(names, differences(x, y, name+".")...)
		case x.Kind() == reflect.Slice && x.Len() == 0 && y.Len() == 0: // nil or empty
		case !reflect.DeepEqual(x.Interface(), y.Interface()):
			names = append(names, name)
		}
	}
	return names
}
