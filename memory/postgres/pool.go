package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// trusted is how long a connection that was not used is taken to be alive without asking.
const trusted = time.Second

// closing bounds how long the server is waited for when a connection is closed.
const closing = 5 * time.Second

// pool lends connections, each to one caller at a time. A connection that was left in the middle of a query, because a context
// ended, keeps its slot until the server has heard of it: so no more are open than there are slots. That is what its
// goroutines wait for, one a slot at most.
type pool struct {
	config *pgx.ConnConfig
	slots  chan struct{}  // one token for each connection that is open and not idle
	ending sync.WaitGroup // goroutines

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
		return wrapped(context.Cause(ctx))
	}
	conn, err := p.take(ctx)
	if err != nil {
		<-p.slots
		return wrapped(err)
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
			return nil, ErrClosed
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
	keep, closed := usable && !p.closed, p.closed
	if keep {
		p.idle = append(p.idle, idleConn{conn, time.Now()})
	}
	if !keep && !closed {
		p.ending.Add(1) // under the lock: before close waits
	}
	p.mu.Unlock()
	switch {
	case keep:
		<-p.slots
	case closed:
		closeConn(conn)
		<-p.slots
	default:
		p.end(conn)
	}
}

// end closes a connection and frees its slot when that is done. It does not wait if the client has closed it already, which it
// does on its own.
func (p *pool) end(conn *pgx.Conn) {
	closeConn(conn)
	go func() {
		defer p.ending.Done()
		<-conn.PgConn().CleanupDone()
		<-p.slots
	}()
}

// close closes what is idle, and what is lent when it comes back, and waits for what is ending.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range idle {
		closeConn(c.conn)
	}
	p.ending.Wait()
}

// closeConn closes a connection. An error makes no difference: the connection is not used again.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_ = conn.Close(ctx)
}
