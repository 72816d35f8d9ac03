package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
)

func Example() {
	cfg := settings.Default()
	cfg.Listen, cfg.AdminAddr = "127.0.0.1:0", ""
	cfg.Keys = []settings.Key{{Tenant: "search", Key: "s3cret"}}
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello, %s", tenant.From(r.Context()))
	})
	server, err := server.New(cfg, api, server.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error)
	go func() { ended <- server.Run(ctx) }()
	<-server.Listening()

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, key := range []string{"s3cret", "guess"} {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+server.Addr()+"/stats", http.NoBody)
		req.Header.Set("Authorization", "Bearer "+key)
		res, err := client.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		fmt.Println(res.StatusCode, string(text))
	}
	stop()
	fmt.Println(<-ended)
	// Output:
	// 200 hello, search
	// 401 {"detail":"Invalid API key"}
	// <nil>
}
