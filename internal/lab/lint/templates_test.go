package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/internal/lab/lint"
	"github.com/ragpilot/ragpilot/internal/prompt/tokens"
)

const rest = " Answer in the language of the question. Never invent an order number. Ask one short question if you are not sure."

// What a name says, with enough text behind it.
func TestTemplateNames(t *testing.T) {
	for expr, cause := range map[string]string{
		"{{.Now}}": "clock", "{{now}}": "clock", `{{.Now.Format "15:04"}}`: "clock", `{{now | date "2006-01-02"}}`: "clock",
		`{{date "2006" now}}`: "clock", "{{.CurrentDate}}": "clock", "{{.current_time}}": "clock", "{{$.Today}}": "clock",
		"{{$t := .Time}}It is {{$t}}": "clock", `{{(now).Format "15:04"}}`: "clock", "{{with .Now}}{{.}}{{end}}": "clock",
		"{{if $d := .Date}}{{$d}}{{end}}": "clock", `{{printf "%s" .Timestamp}}`: "clock", "{{date}}": "clock",
		"{{.UUID}}": "random-id", "{{uuidv4}}": "random-id", "{{.SessionID}}": "random-id", "{{.session_id}}": "random-id",
		"{{.Session.ID}}": "random-id", "{{.ID}}": "random-id", "{{.RequestId | upper}}": "random-id", "{{randAlpha 8}}": "random-id",
		"{{.User}}": "user-name", "{{.User.Name}}": "user-name", "{{.userEmail}}": "user-name", "Hello {{.Name}}": "user-name", "The user's name: {{.Name}}": "user-name",
		"{{with .Customer}}{{.FirstName}}{{end}}": "user-name", "{{.FullName}}": "user-name", "{{.UserID}}": "user-name",
		"{{.Turn}}": "counter", "{{.StepNumber}}": "counter", "{{.MessageCount}}": "counter", "{{len .Messages}}": "counter",
		"{{.Turn.Number}}": "counter",

		"{{.Rules}}": "", "{{.Timeout}}": "", "{{.TimeZone}}": "", "{{.DateFormat}}": "", "{{.ReleaseDate}}": "", "{{.ToolName}}": "",
		"{{.Tool.Name}}": "", "{{.ModelID}}": "", "{{.UserQuestion}}": "", "{{.UserInput}}": "", "{{.Session.Topic}}": "",
		"{{.MaxTurnCount}}": "", "{{.TurnText}}": "", "{{.Turn.Text}}": "", "{{len .Tools}}": "", "You are {{.Name}}": "", "type {{.Name}} struct": "", "{{.Name}}": "", "Hello\n{{.Name}}": "", `{{"now"}}`: "",
		"{{range $k, $v := .Map}}{{$k}}: {{$v}}{{end}}": "", "{{range .Docs}}{{.ID}} {{.Name}} {{.Date}}{{end}}": "",
		"{{range $i, $d := .Docs}}{{$i}} {{$d.ID}}{{end}}": "", "{{$now := .Now}}": "", "{{/* .Now */}}": "", "{{if .User}}you{{end}}": "",
		`{{date "2006" .Published}}`: "", "{{.Identity}}": "", "{{.Nickel}}": "", "{{template \"x\" .Now}}": "",
	} {
		found, err := lint.Templates("t", "Be brief. "+expr+"."+rest+`{{define "x"}}{{end}}`)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		got := ""
		for _, f := range found {
			got += string(f.Cause)
			if want := tokens.Count("." + rest); f.LostTokens != want {
				t.Errorf("%s: %d tokens lost, want %d", expr, f.LostTokens, want)
			}
		}
		if got != cause {
			t.Errorf("%s: %q, want %q", expr, got, cause)
		}
	}
}

// Where a value stands, and what follows.
func TestTemplatePlaces(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"end":       {rest + "\nIt is {{.Now}}.", ""},
		"two":       {"a {{.Now}}\nb {{.User}}" + rest, "1 clock {{.Now}} 28;2 user-name {{.User}} 27;"},
		"branch":    {"{{if .A}}\n{{.Now}}\n{{end}}" + rest, "2 clock {{.Now}} 27;"},
		"else":      {"{{if .A}}" + rest + "{{else}}\n{{.Now}}{{end}}", ""},
		"in branch": {"{{if .A}}{{.Now}}" + rest + "{{end}}", "1 clock {{.Now}} 27;"},
		"optional":  {"{{.Now}}{{if .A}}" + rest + "{{end}}{{range .B}}" + rest + "{{end}}", ""},
		"both":      {"{{.Now}}{{if .A}}" + rest + "{{else}}" + rest + "{{end}}", "1 clock {{.Now}} 27;"},
		"defined":   {"{{define \"s\"}}It is {{.Now}}." + rest + "{{end}}{{template \"s\" .}}", "1 clock {{.Now}} 28;"},
		"trimmed":   {"a\n{{- .Now -}}\n" + rest, "2 clock {{.Now}} 27;"},
		"loop":      {"{{range .Docs}}{{.Text}}{{$.Now}}" + rest + "{{end}}", "1 clock {{$.Now}} 27;"},
		"repeated":  {"{{.Now}}\n{{.Now}} {{ .Now }}" + rest, "1 clock {{.Now}} 27;"},
		"empty":     {"", ""},
	} {
		found, err := lint.Templates("t", c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got strings.Builder
		for _, f := range found {
			fmt.Fprintf(&got, "%d %s %s %d;", f.Line, f.Cause, f.Expr, f.LostTokens)
		}
		if got.String() != c.want {
			t.Errorf("%s: got %q, want %q", name, got.String(), c.want)
		}
	}
	if _, err := lint.Templates("bad.tmpl", "a\n{{.Now"); err == nil || err.Error() != "line 2: unclosed action" {
		t.Errorf("the error is %v", err)
	}
}
