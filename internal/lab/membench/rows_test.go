package membench

import (
	"strings"
	"testing"
)

const goodRow = `{"user":"ana","sessions":[{"id":"1","turns":[{"id":"D1:1","speaker":"Ana","text":"I live in Porto."},` +
	`{"id":"D1:2","speaker":"Bo","text":"How nice."}]}],"questions":[{"question":"Where does Ana ` +
	`live?","answer":"Porto","evidence":["D1:1"]}]}`

func TestReadRows(t *testing.T) {
	data, err := ReadRows(strings.NewReader(goodRow + "\n\n" + strings.Replace(goodRow, `"ana"`, `"bo"`, 1) + "\n"))
	if err != nil || len(data.Cases) != 2 {
		t.Fatal(data, err)
	}
	r := recall(t, data, Target{Store: "inmem", Open: inMemory})
	if len(r.Stages) != 1 || r.Stages[0].Questions != 2 || r.Stages[0].At5 != 1 {
		t.Errorf("%+v", r.Stages)
	}
	p := prompts(t, data, PromptOptions{K: 2})
	for _, a := range p.Arms {
		if held := a.Name != ArmNone; a.Turns != 2 || a.Asking != 2 || held != (a.Held == 1) {
			t.Errorf("%+v", a)
		}
	}
}

func TestReadRowsErrors(t *testing.T) {
	change := func(old, now string) string { return strings.Replace(goodRow, old, now, 1) }
	for name, tc := range map[string]struct{ rows, want string }{
		"empty":             {"\n", "no line with a user"},
		"not JSON":          {goodRow + "\n{", "line 2: "},
		"unknown member":    {change(`"speaker"`, `"talker"`), `line 1: json: unknown field "talker"`},
		"wrong kind":        {change(`"Porto"`, `7`), "line 1: questions.answer: want string, not a number"},
		"no user":           {change(`"ana"`, `""`), `line 1: user ""`},
		"same user":         {goodRow + "\n" + goodRow, `line 2: user "ana" is that of line 1`},
		"no turns":          {`{"user":"a","questions":[]}`, "line 1: sessions: want at least one turn"},
		"no id":             {change(`"D1:2"`, `""`), `line 1: sessions[0].turns[1].id ""`},
		"same id":           {change(`"D1:2"`, `"D1:1"`), `line 1: sessions[0].turns[1].id "D1:1" is that of another turn`},
		"no text":           {change(`"How nice."`, `""`), `line 1: sessions[0].turns[1].text ""`},
		"no questions":      {change(`[{"question":"Where does Ana live?","answer":"Porto","evidence":["D1:1"]}]`, `[]`), "line 1: questions []"},
		"no question":       {change(`"Where does Ana live?"`, `""`), `line 1: questions[0].question ""`},
		"no evidence":       {change(`["D1:1"]`, `[]`), "line 1: questions[0].evidence []"},
		"evidence of none":  {change(`["D1:1"]`, `["D9:9"]`), `line 1: questions[0].evidence[0] "D9:9": no turn has this id`},
		"more behind a row": {goodRow + goodRow, "line 1: more behind the object"},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := ReadRows(strings.NewReader(tc.rows))
			if data != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}

// Whatever the bytes, what is read can be measured: each question has texts that were said.
func FuzzReadRows(f *testing.F) {
	f.Add([]byte(goodRow))
	f.Add([]byte(strings.Replace(goodRow, "D1:1", "D1:2", 1)))
	f.Add([]byte("{}\n[]"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		data, err := ReadRows(strings.NewReader(string(raw)))
		if err != nil {
			if data != nil || !strings.HasPrefix(err.Error(), "line ") && len(strings.TrimSpace(string(raw))) > 0 &&
				!strings.Contains(err.Error(), "no line") {
				t.Fatalf("data %v, error %v", data, err)
			}
			return
		}
		for _, c := range data.Cases {
			said := map[string]bool{}
			for _, s := range c.Statements {
				said[s.Text] = true
			}
			if c.User == "" || len(c.First) == 0 || len(c.Turns) != len(c.First) {
				t.Fatalf("%+v", c)
			}
			for _, q := range c.First {
				for _, text := range q.Needs {
					if !said[text] {
						t.Fatalf("%q needs %q, which was not said", q.Text, text)
					}
				}
				if q.Text == "" || len(q.Needs) == 0 {
					t.Fatalf("%+v", q)
				}
			}
		}
	})
}
