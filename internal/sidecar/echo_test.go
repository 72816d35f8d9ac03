package sidecar_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
)

// As it comes the sidecar shows the first document once more where another order has moved it between others. With the reference's
// behaviour, and with profile most-reuse, it does not.
func TestEchoByProfile(t *testing.T) {
	body := func(names ...string) string {
		var docs string
		for _, n := range names {
			docs += fmt.Sprintf("<document id='%s'>%s says this. %s</document>", n, n, strings.Repeat("It goes on for a while. ", 20))
		}
		return fmt.Sprintf(`{"model":"m","messages":[{"role":"system","content":"<documents>%s</documents>"},{"role":"user","content":"q"}]}`, docs)
	}
	for name, c := range map[string]struct {
		change func(*settings.Config)
		echo   bool
	}{
		"by default": {func(*settings.Config) {}, true},
		"compat":     {func(c *settings.Config) { c.Compat = true }, false},
		"most-reuse": {func(c *settings.Config) { c.Profile = "most-reuse" }, false},
		"by name":    {func(c *settings.Config) { c.Compat, c.Profile = false, "default" }, true},
	} {
		engine := newRecorder(t)
		s := startWhole(t, func(cfg *settings.Config) {
			cfg.InferAPIURL = engine.URL
			c.change(cfg)
		})
		s.post(t, "/v1/chat/completions", body("a", "x", "b", "c", "d", "e", "f", "g"))
		s.post(t, "/v1/chat/completions", body("x", "a", "b", "c", "d", "e", "f", "g"))
		text := gjson.GetBytes(engine.last(), "messages.0.content").Str
		if !strings.HasPrefix(text, "<documents><document id='a'>") {
			t.Errorf("%s: what is cached does not stand first: %.200s", name, text)
		}
		if got := strings.Contains(text, "\n<doc x again>\nx says this."); got != c.echo {
			t.Errorf("%s: echo %v: %s", name, got, text)
		}
	}
}
