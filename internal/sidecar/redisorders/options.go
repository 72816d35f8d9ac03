package redisorders

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/ragpilot/ragpilot/internal/prompt/orders"
)

// Options configure a Store. URL is required.
type Options struct {
	// URL is redis://[user:password@]host[:port][/database], rediss:// for TLS, or unix:///path. What is no letter or digit
	// in a password is best written as %XX. A query ?budget=20ms stands for Budget where that is 0.
	URL      string
	TLS      *tls.Config    // for rediss://; nil: the system's certificates
	Prefix   string         // of all keys; "": "ragpilot:orders:"
	TTL      time.Duration  // since an order was last asked for; 0: 24 h
	Budget   time.Duration  // of one Get or Put; 0: what the URL says, else 5 ms
	Failures int            // in a row after which Redis is not asked; 0: 5
	Pause    time.Duration  // for how long; 0: 1 s
	Memory   *orders.Memory // in front; nil: NewMemory(0, 0)
	Log      *slog.Logger   // nil: silent
	// Took receives how long Redis took for what it answered, late answers included; nil: not needed. It is called concurrently.
	Took func(time.Duration)
}

// ErrURL: Options.URL is not one of Redis. The URL is not in the error, as it may hold a password.
var ErrURL = errors.New("redisorders: not a URL like redis://user:password@host:6379/0 " +
	"(in a password, write other than letters and digits as %XX)")

// ErrBudget: the URL has a budget that is none. What it has instead is not in the error, as it may be a password.
var ErrBudget = errors.New("redisorders: want a time above 0 as the URL's budget, such as ?budget=20ms")

const (
	maxUnderWay = 64 // operations, and so connections
	// patience is how long an operation goes on when no request waits for it any more.
	patience = time.Second
	// forgetPatience bounds Forget, whatever its context says.
	forgetPatience = 30 * time.Second
)

func (o Options) withDefaults() (Options, error) {
	if o.TTL < 0 || o.Budget < 0 || o.Failures < 0 || o.Pause < 0 {
		return o, errors.New("redisorders: TTL, Budget, Failures and Pause must not be negative")
	}
	if o.TTL > 0 && o.TTL < time.Millisecond {
		return o, fmt.Errorf("redisorders: TTL is %s, must be at least 1ms", o.TTL)
	}
	o.TTL, o.Budget, o.Pause = cmp.Or(o.TTL, 24*time.Hour), cmp.Or(o.Budget, 5*time.Millisecond), cmp.Or(o.Pause, time.Second)
	o.Failures, o.Prefix = cmp.Or(o.Failures, 5), cmp.Or(o.Prefix, "ragpilot:orders:")
	if o.Memory == nil {
		o.Memory = orders.NewMemory(0, 0)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Took == nil {
		o.Took = func(time.Duration) {}
	}
	return o, nil
}

// takeBudget moves the budget out of the URL, where go-redis would not know it.
func (o *Options) takeBudget() error {
	u, err := url.Parse(o.URL)
	if err != nil {
		return ErrURL
	}
	query := u.Query()
	if !query.Has("budget") {
		return nil
	}
	budget, err := time.ParseDuration(query.Get("budget"))
	if err != nil || budget <= 0 {
		return ErrBudget
	}
	o.Budget = cmp.Or(o.Budget, budget)
	query.Del("budget")
	u.RawQuery = query.Encode()
	o.URL = u.String()
	return nil
}

// clientOptions are those of go-redis. Its errors are not passed on, as they may quote the URL.
func (o *Options) clientOptions() (*redis.Options, error) {
	c, err := redis.ParseURL(o.URL)
	if err != nil {
		return nil, ErrURL
	}
	if o.TLS != nil {
		if c.TLSConfig == nil {
			return nil, errors.New("redisorders: Options.TLS is set, but the URL is not rediss://")
		}
		name := c.TLSConfig.ServerName
		c.TLSConfig = o.TLS.Clone()
		if c.TLSConfig.ServerName == "" {
			c.TLSConfig.ServerName = name
		}
	}
	wait := o.patience()
	c.DialTimeout, c.ReadTimeout, c.WriteTimeout, c.PoolTimeout = wait, wait, wait, wait
	c.ContextTimeoutEnabled = true
	c.MaxRetries, c.DialerRetries = -1, 1 // the breaker tries again
	c.PoolSize, c.MinIdleConns = maxUnderWay, 0
	c.PipelinePoolSize = -1 // everything is a pipeline
	c.ReadBufferSize, c.WriteBufferSize = 8<<10, 8<<10
	c.Protocol, c.DisableIdentity = 2, true // fewer round trips for a new connection
	c.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return c, nil
}

func (o *Options) patience() time.Duration { return max(patience, 2*o.Budget) }

// quiet keeps go-redis from writing to standard error.
var quiet = sync.OnceFunc(logging.Disable)

// Open returns a Store. It does not connect; [Store.Connect] does.
func Open(o Options) (*Store, error) {
	if err := o.takeBudget(); err != nil {
		return nil, err
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c, err := o.clientOptions()
	if err != nil {
		return nil, err
	}
	quiet()
	s := &Store{
		opt: o, client: redis.NewClient(c), password: c.Password, memory: o.Memory,
		breaker: &breaker{limit: o.Failures, pause: o.Pause, now: time.Now},
		latest:  latest{newPlaces[string]()}, alone: alone{places: newPlaces[put]()},
		underWay: make(chan struct{}, maxUnderWay),
	}
	s.base, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// redacted is an error whose text does not hold the password.
type redacted struct {
	error
	password string
}

func (e redacted) Error() string {
	if e.password == "" {
		return e.error.Error()
	}
	return strings.ReplaceAll(e.error.Error(), e.password, "…")
}

func (e redacted) Unwrap() error { return e.error }

func (s *Store) redact(err error) error { return redacted{err, s.password} }
