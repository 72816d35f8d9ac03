package server_test

import (
	"log"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/sidecar/server"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/internal/testkit"
)

// What libraries print becomes lines of the log, without what a peer has sent.
func TestStandardLog(t *testing.T) {
	out := new(testkit.Log)
	l := log.New(server.StandardLog(server.NewLogger(out, "json", settings.NewLive(settings.Default()))), "", 0)
	l.Printf("Unsolicited response received on idle HTTP channel starting with %q; err=%v", "HTTP/1.1 200 OK the secret", nil)
	l.Printf("net/http: malformed answer %q", "a secret too")
	l.Print("one\nsecret of a second line")
	text := out.String()
	testkit.Contains(
		t,
		"log",
		text,
		`"level":"WARN"`,
		`"text":"Unsolicited response received on idle HTTP channel"`,
		`"text":"net/http: malformed answer"`,
		`"text":"one"`,
	)
	if strings.Contains(text, "secret") || strings.Count(text, "\n") != 3 {
		t.Errorf("log: %s", text)
	}
}
