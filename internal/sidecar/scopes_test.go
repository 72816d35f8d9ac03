package sidecar_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar"
	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// A tenant whose texts in front of the documents all differ needs an index for each. Another tenant keeps its own.
func TestIndexesOfATenantAreItsOwn(t *testing.T) {
	l := newTenants(t, sidecar.Options{}, func(cfg *settings.Config) { cfg.Limits.Tenants = 2 })
	post := func(tenant, front, last string) {
		t.Helper()
		text := fmt.Sprintf(
			`%s <documents><document>%s</document><document>%s</document></documents>`,
			front,
			strings.Repeat("a long one ", 100),
			last,
		)
		do(
			t,
			"POST",
			l.front.URL+"/v1/chat/completions",
			tenant,
			fmt.Sprintf(`{"model":"m","messages":[{"role":"system","content":%q},{"role":"user","content":"q"}]}`, text),
		)
	}
	post("quiet", "Answer.", "b")
	for i := range 100 {
		post("busy", fmt.Sprint("Today is ", i), "b")
	}
	post("quiet", "Answer.", "c")
	data := parsed[dashboard.Data](t, do(t, "GET", l.admin.URL+"/ui/data.json", "", ""))
	own := 0
	for _, e := range data.Engines {
		if e.Tenant == "quiet" {
			own++
			if *e.Live != 2 {
				t.Errorf("the quiet tenant's index holds %d prompts, want 2", *e.Live)
			}
		}
	}
	if own != 1 || len(data.Engines) != 64 {
		t.Errorf("%d of %d indexes are the quiet tenant's", own, len(data.Engines))
	}
	if r := data.Requests[0]; r.Tenant != "quiet" || r.Predicted == nil || *r.Predicted < 100 {
		t.Errorf("the last request is %+v, predicted %v: the quiet tenant's prompt was forgotten", r, r.Predicted)
	}
}
