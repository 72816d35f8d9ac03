package evict_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines/evict"
)

func Example() {
	pilot, _ := contextpilot.New(contextpilot.Config{})
	scope := contextpilot.Scope{Model: "tiny", Replica: "gpu-0"}
	requests := evict.NewRegistry(0)
	handler := evict.New(evict.Options{Requests: requests, Observe: pilot.Observe})

	for _, id := range []string{"req-a", "req-b"} {
		plan := pilot.Plan(contextpilot.Request{ID: id, Scope: scope, Blocks: []contextpilot.Block{{ID: id, Text: "All about tides."}}})
		requests.Add(plan.RequestID, scope) // before it is sent
		pilot.Observe(contextpilot.Event{Kind: contextpilot.Served, Scope: scope, Request: id})
	}

	// As the plugin in the engine posts it.
	report := `{"request_ids":["chatcmpl-req-a-0a1b2c3d"],"prefixes":[]}`
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(context.Background(), "POST", "/evict", strings.NewReader(report)))
	fmt.Print(answer.Code, " ", answer.Body)
	fmt.Println(pilot.Stats().LiveRequests, "request is left")
	// Output:
	// 200 {"status":"success","normalized_request_ids":["req-a-0a1b2c3d"],"removed_count":1,"evicted_request_ids":["req-a"],"shrunk_request_ids":[],"not_found":[]}
	// 1 request is left
}
