package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// trusted is how long a connection that was not used is taken to be alive without asking.
const trusted = time.Second

// closing bounds how long the server is waited for when a connection is closed.
const closing = 5 * time.Second

var errClosed = errors.New("postgres: closed")

// pool lends connections, each to one caller at a time. It starts no goroutines.
type pool struct {
	config *pgx.ConnConfig
	slots  chan struct{} // one token for each connection lent

	mu     sync.Mutex
	idle   []idleConn // guarded by mu; the one used last at the end
	closed bool       // guarded by mu
}

type idleConn struct {
	conn  *pgx.Conn
	since time.Time
}

func newPool(config *pgx.ConnConfig, size int) *pool {
	return &pool{config: config, slots: make(chan struct{}, size)}
}

// with calls f with a connection, waiting for one if all are lent.
func (p *pool) with(ctx context.Context, f func(*pgx.Conn) error) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.slots }()
	conn, err := p.take(ctx)
	if err != nil {
		return err
	}
	healthy := false
	defer func() { p.giveBack(conn, healthy) }() // also when f panics
	err = f(conn)
	healthy = true
	return err
}

// take returns an idle connection that still works, or a new one.
func (p *pool) take(ctx context.Context) (*pgx.Conn, error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, errClosed
		}
		n := len(p.idle)
		if n == 0 {
			p.mu.Unlock()
			return pgx.ConnectConfig(ctx, p.config)
		}
		last := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		if time.Since(last.since) < trusted || last.conn.Ping(ctx) == nil {
			return last.conn, nil
		}
		closeConn(last.conn)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// giveBack keeps a connection that is usable: not broken, and not within a transaction.
func (p *pool) giveBack(conn *pgx.Conn, healthy bool) {
	usable := healthy && !conn.IsClosed() && conn.PgConn().TxStatus() == 'I'
	p.mu.Lock()
	keep := usable && !p.closed
	if keep {
		p.idle = append(p.idle, idleConn{conn, time.Now()})
	}
	p.mu.Unlock()
	if !keep {
		closeConn(conn)
	}
}

// close closes what is idle, and what is lent when it comes back.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range idle {
		closeConn(c.conn)
	}
}

// closeConn tells the server; whether it hears makes no difference to us.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_ = conn.Close(ctx)
}
