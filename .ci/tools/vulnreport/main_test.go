package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	const config = `{"config":{"go_version":"go1.26.8"}}` + "\n" + `{"osv":{"id":"GO-1","summary":"Panic in m"}}` + "\n"
	const module = `{"finding":{"osv":"GO-1","fixed_version":"v1.1.0","trace":[{"module":"m","version":"v1.0.0"}]}}` + "\n"
	const called = `{"finding":{"osv":"GO-1","fixed_version":"v1.1.0","trace":[{"module":"m","version":"v1.0.0","package":"m/p","function":"F"},` +
		`{"module":"ours","package":"ours","function":"Run","position":{"filename":"run.go","line":7}}]}}` + "\n"
	for name, tc := range map[string]struct {
		in, accepted string
		status       int
		want         string
	}{
		"none":                   {config, "# nothing\n", 0, "0 vulnerabilities found, 0 more are accepted; go1.26.8\n"},
		"only required":          {config + module, "", 0, "0 vulnerabilities found"},
		"called":                 {config + module + called, "", 3, "FOUND    GO-1 m@v1.0.0 (fixed: v1.1.0): Panic in m\n         run.go:7 calls, in the end, m/p.F\n1 v"},
		"accepted":               {config + module + called, "GO-1 m@v1.0.0 2026-11-29 we never call it twice\n", 0, "accepted 2026-11-29: we never call it twice\n0 vulnerabilities found, 1 more"},
		"another version":        {config + called, "GO-1 m@v0.9.0 2026-11-29 why\n", 3, "FAILED   GO-1 m@v0.9.0 is accepted, and not found any more"},
		"no longer found":        {config, "GO-1 m@v1.0.0 2026-11-29 why\n", 1, "take it off the list"},
		"of this Go":             {config, "GO-2 stdlib@v1.26.8 2026-11-29 why\n", 1, "take it off the list"},
		"of another Go":          {config, "GO-2 stdlib@v1.26.7 2026-11-29 why\n", 0, "0 vulnerabilities found"},
		"nothing was scanned":    {"", "", -1, "no output of govulncheck"},
		"broken off":             {config + `{"finding":{`, "", -1, "unexpected EOF"},
		"accepted by no date":    {config, "GO-1 m@v1.0.0 yesterday why\n", -1, "yesterday"},
		"accepted for no reason": {config, "GO-1 m@v1.0.0 2026-11-29\n", -1, "reason"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			status, err := report(strings.NewReader(tc.in), strings.NewReader(tc.accepted), &out)
			if err != nil {
				status = -1
				out.WriteString(err.Error())
			}
			if status != tc.status || !strings.Contains(out.String(), tc.want) {
				t.Errorf("status %d, want %d, with %q in:\n%s", status, tc.status, tc.want, out.String())
			}
		})
	}
}
