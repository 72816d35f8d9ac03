package gotemplate_test

import (
	"bytes"
	"strings"
	"testing"
	"text/template"

	"github.com/ragpilot/ragpilot/internal/prompt/gotemplate"
)

const system = `You are a clerk of the shop. {{- /* a comment */}}
It is {{.Now}}. Answer in the language of the question.
{{if .Premium}}The customer pays for quick answers, so be quick.
{{end -}}
{{range .Docs}}Document: {{.Title}}, which says {{.Text}}.
{{end}}Never invent an order number. {{template "user" .}} Ask one short question if you are not sure.
{{with .Note}}A note of the day: {{.}}
{{end}}{{.Date}} {{.Time}}
Use the tools that you have.
{{define "user"}}The user's name is {{.Name}}, and nothing else is known.{{end}}Last word: {{.End}}`

type doc struct{ Title, Text string }

func values(change func(m map[string]any)) map[string]any {
	m := map[string]any{
		"Now": "4:14", "Premium": false, "Docs": []doc{{"Apples", "they are red"}, {"Pears", "they are green"}}, "Name": "Anna", "Note": "rain",
		"Date": "Friday", "Time": "noon", "End": "bye",
	}
	if change != nil {
		change(m)
	}
	return m
}

func render(t *testing.T, change func(m map[string]any)) string {
	t.Helper()
	var b bytes.Buffer
	if err := template.Must(template.New("t").Parse(system)).Execute(&b, values(change)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Each value of the template is changed, and the place of the first difference must lead to its action.
func TestFind(t *testing.T) {
	f, err := gotemplate.Parse("system.tmpl", system)
	if err != nil {
		t.Fatal(err)
	}
	was := render(t, nil)
	for _, c := range []struct {
		name   string
		change func(m map[string]any)
		line   int
		action string
	}{
		{"clock", func(m map[string]any) { m["Now"] = "4:15" }, 2, "{{.Now}}"},
		{"branch", func(m map[string]any) { m["Premium"] = true }, 3, "{{if .Premium}}"},
		{"order", func(m map[string]any) { m["Docs"] = []doc{{"Pears", "they are green"}, {"Apples", "they are red"}} }, 5, "{{.Title}}"},
		{"text", func(m map[string]any) { m["Docs"] = []doc{{"Apples", "they are sweet"}, {"Pears", "they are green"}} }, 5, "{{.Text}}"},
		{"second", func(m map[string]any) { m["Docs"] = []doc{{"Apples", "they are red"}, {"Plums", "they are green"}} }, 5, "{{.Title}}"},
		{"more", func(m map[string]any) {
			m["Docs"] = []doc{{"Apples", "they are red"}, {"Pears", "they are green"}, {"Plums", "blue"}}
		}, 5, "{{range .Docs}}"},
		{"name in another template", func(m map[string]any) { m["Name"] = "Bob" }, 10, "{{.Name}}"},
		{"with", func(m map[string]any) { m["Note"] = "sun" }, 7, "{{.}}"},
		{"date", func(m map[string]any) { m["Date"] = "Monday" }, 8, "{{.Date}}"},
		{"time", func(m map[string]any) { m["Time"] = "night" }, 8, "{{.Time}}"},
		{"end", func(m map[string]any) { m["End"] = "farewell" }, 10, "{{.End}}"},
	} {
		is := render(t, c.change)
		at := 0
		for at < len(is) && at < len(was) && is[at] == was[at] {
			at++
		}
		for _, text := range []string{is, strings.TrimSpace(is), "Hello.\n\n" + is} {
			got, ok := gotemplate.Find([]*gotemplate.File{f}, text, at+len(text)-len(strings.TrimPrefix(text, "Hello.\n\n")))
			if want := (gotemplate.Place{File: "system.tmpl", Line: c.line, Action: c.action}); !ok || got != want {
				t.Errorf("%s: got %v, %t, want %v", c.name, got, ok, want)
			}
		}
	}
}

// White space at both ends of what a template wrote may be cut off.
func TestFindTrimmed(t *testing.T) {
	f, err := gotemplate.Parse("t", "\n\n  It is {{.Now}}. Be brief.\n\n")
	if err != nil {
		t.Fatal(err)
	}
	got, ok := gotemplate.Find([]*gotemplate.File{f}, "It is 4:14. Be brief.", 8)
	if want := (gotemplate.Place{File: "t", Line: 3, Action: "{{.Now}}"}); !ok || got != want {
		t.Errorf("got %v, %t", got, ok)
	}
}

// Nothing is found in a text that the template did not write, or in its own words.
func TestFindNothing(t *testing.T) {
	f, err := gotemplate.Parse("t", "It is {{.Now}}. Answer briefly.")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		at   int
	}{
		{"Where are my plums?", 3}, {"", 0}, {"It is 4:14. Answer briefly.", 15}, {"It is 4:14. Answer briefly.", 2}, {"x", 5}, {"x", -1},
	} {
		if got, ok := gotemplate.Find([]*gotemplate.File{f}, c.text, c.at); ok {
			t.Errorf("%q at %d: %v", c.text, c.at, got)
		}
	}
	if _, err := gotemplate.Parse("bad.tmpl", "a\n{{.Now"); err == nil || !strings.Contains(err.Error(), "bad.tmpl:2") {
		t.Errorf("the error is %v", err)
	}
}

func TestInGo(t *testing.T) {
	files, err := gotemplate.InGo("prompt.go", "package p\n\nimport \"fmt\"\n\nconst a = `You are a clerk.\nIt is {{.Now}}. Be brief.`\n\n"+
		"var b = \"Today is {{.Date}}.\\nThe user\" +\n\t\" is {{.User}} and no other.\" + `\nAnd {{.Last}} words follow.`\n"+
		"var c = fmt.Sprint(\"{{.\") + \"x\"\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text, at string
		want     gotemplate.Place
	}{
		{"You are a clerk.\nIt is 4:14. Be brief.", "4:14", gotemplate.Place{File: "prompt.go", Line: 6, Action: "{{.Now}}"}},
		{"Today is Monday.\nThe user is Bob and no other.\nAnd some words follow.", "Monday", gotemplate.Place{File: "prompt.go", Line: 8, Action: "{{.Date}}"}},
		{"Today is Monday.\nThe user is Bob and no other.\nAnd some words follow.", "Bob", gotemplate.Place{File: "prompt.go", Line: 9, Action: "{{.User}}"}},
		{"Today is Monday.\nThe user is Bob and no other.\nAnd some words follow.", "some", gotemplate.Place{File: "prompt.go", Line: 10, Action: "{{.Last}}"}},
	} {
		if got, ok := gotemplate.Find(files, c.text, strings.Index(c.text, c.at)); !ok || got != c.want {
			t.Errorf("%s: got %v, %t", c.at, got, ok)
		}
	}
	if _, err := gotemplate.InGo("bad.go", "package"); err == nil {
		t.Error("no error for a program that is none")
	}
}
