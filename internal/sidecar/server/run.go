package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Run opens the listeners and serves until ctx ends. Then /readyz says 503, the main listener closes after
// Timeouts.LameDuck, and answers that are being made have Timeouts.Drain to come to their end: after it their contexts
// and connections are cut. Run returns nil if none was cut. It leaves no goroutine behind, unless a handler that was
// cut does not return within 2 seconds.
func (s *Server) Run(ctx context.Context) error {
	if s.began.Swap(true) {
		return errors.New("serve: Run was called twice")
	}
	defer s.cut()
	main, admin, err := s.listen(ctx)
	if err != nil {
		return err
	}
	secure := s.mainServer.TLSConfig != nil // net/http makes one when it begins to serve
	var own sync.WaitGroup
	defer own.Wait()
	ended := make(chan error, 1)
	own.Go(func() { ended <- s.serveMain(main) })
	if admin != nil {
		own.Go(func() {
			if err := s.adminServer.Serve(admin); !errors.Is(err, http.ErrServerClosed) {
				s.log.Warn("admin listener ended", "error", err)
			}
		})
		defer s.closeAdmin(ctx)
	}
	stop := make(chan struct{})
	defer close(stop)
	own.Go(func() { s.reloads(stop) })

	s.state.Store(ready)
	close(s.listening)
	// Who waits for this line may ask at once.
	s.log.Info("listening", "addr", s.Addr(), "admin_addr", s.AdminAddr(), "tls", secure)
	select {
	case <-ctx.Done():
		return s.drain(ctx)
	case err := <-ended:
		_ = s.mainServer.Close() // its listener has failed already
		return fmt.Errorf("serve: listener %s: %w", s.Addr(), err)
	}
}

func (s *Server) listen(ctx context.Context) (main, admin net.Listener, err error) {
	s.mu.Lock()
	cfg := s.mu.config
	s.mu.Unlock()
	for _, text := range cfg.Warnings() {
		s.log.Warn(text)
	}
	var lc net.ListenConfig
	if main, err = lc.Listen(ctx, "tcp", cfg.Listen); err != nil {
		return nil, nil, fmt.Errorf("serve: listen %q: %w", cfg.Listen, err)
	}
	if cfg.AdminAddr != "" {
		if admin, err = lc.Listen(ctx, "tcp", cfg.AdminAddr); err != nil {
			s.log.Warn("no admin listener: going on without metrics and pprof", "admin_addr", cfg.AdminAddr, "error", err)
		}
	}
	most := func() int { return s.live.Load().Limits.Connections }
	main = &bounded{Listener: main, most: most, plain: !cfg.TLS.On(), refused: s.count.connections.Inc}
	s.mu.Lock()
	s.mu.addr = main.Addr().String()
	if admin != nil {
		s.mu.adminAddr = admin.Addr().String()
	}
	s.mu.Unlock()
	return main, admin, nil
}

func (s *Server) serveMain(l net.Listener) error {
	if s.mainServer.TLSConfig != nil {
		return s.mainServer.ServeTLS(l, "", "")
	}
	return s.mainServer.Serve(l)
}

// reloads calls Reload for each signal. No caller gets its error, so it is logged here.
func (s *Server) reloads(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-s.options.Hangup:
			if err := s.Reload(); err != nil {
				s.log.Error("configuration not reloaded, the old one stays", "error", err)
			}
		}
	}
}

// cutGrace is how long Run waits for handlers whose context was cut.
const cutGrace = 2 * time.Second

func (s *Server) drain(ctx context.Context) error {
	s.state.Store(draining)
	if pause := s.timeouts.LameDuck; pause > 0 {
		s.log.Info("stopping, requests are still taken", "for", pause)
		<-time.After(pause)
	}
	s.log.Info("draining", "requests", s.inFlight.Load(), "for_at_most", s.timeouts.Drain)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeouts.Drain)
	defer cancel()
	defer s.flush(bounded)
	err := s.mainServer.Shutdown(bounded)
	if err == nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	n := s.inFlight.Load()
	// First the connections, then the contexts: a handler that returns because its context ended would otherwise
	// make its answer look whole.
	_ = s.mainServer.Close() // there is no better answer to an error
	s.cut()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(cutGrace); s.inFlight.Load() > 0 && time.Now().Before(end); {
		<-tick.C
	}
	if n == 0 {
		return nil // connections on which nothing was asked
	}
	return fmt.Errorf("serve: requests that were cut, since they had not ended within %v: %d", s.timeouts.Drain, n)
}

// Traces get what is left of the time for draining, but not more than maxFlush, so that a collector that is gone does not
// hold a restart up. They get minFlush even if nothing is left.
const (
	minFlush = time.Second
	maxFlush = 5 * time.Second
)

// flush sends the spans of the last requests. Those that get lost are counted by the tracer.
func (s *Server) flush(draining context.Context) {
	left := minFlush
	if end, ok := draining.Deadline(); ok {
		left = min(max(time.Until(end), minFlush), maxFlush)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(draining), left)
	defer cancel()
	_ = s.options.Tracer.Flush(ctx)
}

// closeAdmin gives a last scrape a second.
func (s *Server) closeAdmin(ctx context.Context) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if s.adminServer.Shutdown(bounded) != nil {
		_ = s.adminServer.Close()
	}
}
