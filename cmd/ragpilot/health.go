package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// healthFlags say which server is asked. They are found as those of serve are, so that both agree inside a container.
type healthFlags struct {
	file, admin string
	ready       bool
	timeout     time.Duration
}

func newHealth() *cobra.Command {
	f := &healthFlags{}
	cmd := newCommand("health", "Ask a running server on this machine how it is",
		"Health asks the admin address of `ragpilot serve` on this machine, and exits 1 unless it answers that all is well.\n"+
			"It is for containers without a shell.", func(cmd *cobra.Command) error {
			source := settings.Source{File: f.file, Env: os.LookupEnv, Flags: func(c *settings.Config) error {
				if cmd.Flags().Changed("admin-addr") {
					c.AdminAddr = f.admin
				}
				return nil
			}}
			cfg, err := source.Load()
			if err != nil {
				return err
			}
			if cfg.AdminAddr == "" {
				return errors.New("--admin-addr is empty: there is no address to ask")
			}
			path := "/healthz"
			if f.ready {
				path = "/readyz"
			}
			return askHealth(cmd.Context(), "http://"+cfg.AdminAddr+path, f.timeout)
		})
	flags := cmd.Flags()
	flags.StringVar(&f.file, "config", "", "settings `FILE` of the server")
	flags.StringVar(&f.admin, "admin-addr", settings.Default().AdminAddr, "the server's `HOST:PORT` for metrics")
	flags.BoolVar(&f.ready, "ready", false, "ask whether it takes requests: while it ends running answers it is healthy, but not ready")
	flags.DurationVar(&f.timeout, "timeout", 2*time.Second, "`TIME` to wait for the answer")
	return cmd
}

// askHealth returns an error unless the answer is 200.
func askHealth(ctx context.Context, url string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // never through a proxy
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("%s answers %d: %s", url, response.StatusCode, text)
	}
	return nil
}
