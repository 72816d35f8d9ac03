package batch

import (
	"context"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/ragpilot/ragpilot/batch/table"
	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/engines"
)

// What a task cannot ask for is found before the table is read.
func TestTaskErrors(t *testing.T) {
	retrieve := func(context.Context, map[string]string) ([]contextpilot.Block, error) { return nil, nil }
	extra := func(name, value string) map[string]json.RawMessage {
		return map[string]json.RawMessage{"seed": json.RawMessage("1"), name: json.RawMessage(value)}
	}
	for want, task := range map[string]Task{
		"max tokens -1: want at least 1":                         {MaxTokens: -1},
		"temperature -0.5: want at least 0":                      {Temperature: -0.5},
		"temperature NaN: want at least 0":                       {Temperature: math.NaN()},
		"temperature +Inf: want at least 0":                      {Temperature: math.Inf(1)},
		"model \"\\xff\": it is not UTF-8":                       {Model: "\xff"},
		"schema: not JSON":                                       {Schema: json.RawMessage("{")},
		"schema: ":                                               {Schema: json.RawMessage(`{"type":5}`)},
		`blocks "b": they come from a column or`:                 {Prompt: Prompt{Blocks: "b"}, Retrieve: retrieve},
		`extra member "x": "{" is not JSON`:                      {Extra: extra("x", "{")},
		`extra member "messages": it cannot be set`:              {Extra: extra("messages", "[]")},
		`extra member "stream": it cannot be set`:                {Extra: extra("stream", "false")},
		`extra member "stream_options": it cannot be set`:        {Extra: extra("stream_options", "{}")},
		"extra member n: 2: only the text of one answer is kept": {Extra: extra("n", "2")},
	} {
		if err := task.check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	good := Task{
		MaxTokens: 5, Temperature: 0.5, Schema: json.RawMessage(`{"type":"string"}`), Extra: extra("n", "1"), Retrieve: retrieve,
	}
	if err := good.check(); err != nil {
		t.Error(err)
	}
}

// The request of a prompt, and what further members do to it.
func TestTaskRequest(t *testing.T) {
	columns := []string{"city"}
	for name, c := range map[string]struct {
		task      Task
		maxTokens int
		sent      map[string]string
	}{
		"defaults":        {Task{}, DefaultMaxTokens, map[string]string{}},
		"max tokens":      {Task{MaxTokens: 9}, 9, map[string]string{}},
		"further members": {Task{Extra: map[string]json.RawMessage{"seed": json.RawMessage("1")}}, DefaultMaxTokens, map[string]string{"seed": "1"}},
		"another bound": {
			Task{MaxTokens: 9, Extra: map[string]json.RawMessage{"max_completion_tokens": json.RawMessage("7")}},
			7,
			map[string]string{"max_completion_tokens": "7", "max_tokens": ""}, // an empty value removes the member
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.task.Prompt = Prompt{System: "Be short.", Text: "Where?\n{{city}}\nAnswer:"}
			c.task.Model = "m"
			l, err := c.task.Prompt.layout(columns, false)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(newSpec(&c.task, l, "digest"))
			if err != nil {
				t.Fatal(err)
			}
			s, err := readSpec(raw) // as a worker has it
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // a request leaves the task as it was
				r, err := s.request("Lima\n", nil)
				if err != nil {
					t.Fatal(err)
				}
				sent := map[string]string{}
				for name, value := range r.Extra {
					sent[name] = string(value)
				}
				want := []engines.Message{{Role: engines.System, Content: "Be short."}, {Role: engines.User, Content: "Where?\nLima\nAnswer:"}}
				if !reflect.DeepEqual(r.Messages, want) || r.Model != "m" || r.MaxTokens != c.maxTokens || *r.Temperature != 0 ||
					!reflect.DeepEqual(sent, c.sent) {
					t.Errorf("%+v %v", r, sent)
				}
				if !reflect.DeepEqual(s.Extra, c.task.Extra) {
					t.Errorf("the task has other members now: %v", s.Extra)
				}
			}
		})
	}
}

// Members of a task win over those of bodies; a body that cannot be read is an error.
func TestTaskRequestOfABody(t *testing.T) {
	s := &spec{Task: Task{Extra: map[string]json.RawMessage{"max_tokens": json.RawMessage("3"), "x": json.RawMessage("1")}}}
	r, err := s.request("", json.RawMessage(`{"messages":[{"role":"user","content":"q"}],"max_tokens":5,"y":2}`))
	if err != nil || r.MaxTokens != 3 || string(r.Extra["max_tokens"]) != "3" || string(r.Extra["x"]) != "1" || string(r.Extra["y"]) != "2" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, body := range []string{"null", "[]", "{"} {
		if _, err := s.request("", json.RawMessage(body)); err == nil {
			t.Errorf("%s is a request", body)
		}
	}
}

// A job is the same if its prompt and its table are, and not if any part of its task differs.
func TestSameSpec(t *testing.T) {
	base := Task{Prompt: Prompt{Text: "{{a}}", Columns: nil}, Model: "m"}
	spec := func(task Task, digest string) json.RawMessage {
		l, err := task.Prompt.layout([]string{"a", "b"}, false)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(newSpec(&task, l, digest))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	same := base
	same.Prompt.Order = DefaultOrder
	if !sameSpec(spec(base, "d"), spec(same, "d")) {
		t.Error("the default order is another job")
	}
	for name, change := range map[string]func(*Task){
		"text":        func(x *Task) { x.Prompt.Text = "{{b}}" },
		"system":      func(x *Task) { x.Prompt.System = "s" },
		"columns":     func(x *Task) { x.Prompt.Text, x.Prompt.Columns = "{{*}}", []string{"b"} },
		"blocks":      func(x *Task) { x.Prompt.Blocks = "b" },
		"examples":    func(x *Task) { x.Prompt.Examples = []Example{{Cells: map[string]string{"a": "1"}, Answer: "2"}} },
		"order":       func(x *Task) { x.Prompt.Order = PerRow },
		"model":       func(x *Task) { x.Model = "n" },
		"max tokens":  func(x *Task) { x.MaxTokens = 5 },
		"temperature": func(x *Task) { x.Temperature = 1 },
		"schema":      func(x *Task) { x.Schema = json.RawMessage(`{}`) },
		"extra":       func(x *Task) { x.Extra = map[string]json.RawMessage{"seed": json.RawMessage("1")} },
	} {
		other := base
		change(&other)
		if sameSpec(spec(base, "d"), spec(other, "d")) {
			t.Errorf("%s: the same job", name)
		}
	}
	if sameSpec(spec(base, "d"), spec(base, "e")) {
		t.Error("another table is the same job")
	}
}

// An OpenAI batch file takes nothing of a prompt; its requests keep their bodies, and equal ones are sent once.
func TestOpenAIBatchFileIsPrepared(t *testing.T) {
	line := func(id, url, body string) string {
		return `{"custom_id":"` + id + `","method":"POST","url":"` + url + `","body":` + body + "}\n"
	}
	const chat, first = "/v1/chat/completions", `{"model":"m",  "messages":[{"role":"user","content":"q"}]}`
	in := tableOf(t, table.OpenAI, line("a", chat, first)+line("b", chat, `{"messages":[{"content":"q","role":"user"}],"model":"m"}`)+
		line("c", chat, `{"model":"m","messages":[{"role":"user","name":"q"}]}`)+line("d", chat, `{"model":"m","messages":[{"role":"user","name":"r"}]}`))
	p, err := arrange(t, in, Task{})
	if err != nil {
		t.Fatal(err)
	}
	all := requestsOf(t, p)
	if len(all) != 3 || string(all[0].Body) != first || !reflect.DeepEqual(all[0].Rows, []int{0, 1}) {
		t.Errorf("%+v", all)
	}
	for want, text := range map[string]string{
		`line 2: url "/v1/completions": only /v1/chat/completions can be run`: line("a", chat, first) + line("b", "/v1/completions", `{"prompt":"q"}`),
		"line 1: body.messages: missing, want a list of messages":             line("a", chat, `{}`),
	} {
		if _, err := arrange(t, tableOf(t, table.OpenAI, text), Task{}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, task := range []Task{
		{Model: "m"}, {MaxTokens: 1}, {Temperature: 1}, {Prompt: Prompt{Text: "x"}}, {Prompt: Prompt{Order: AsIs}}, {Schema: json.RawMessage("{}")},
	} {
		if _, err := arrange(t, in, task); err == nil || !strings.Contains(err.Error(), "whole requests") {
			t.Errorf("%+v: %v", task, err)
		}
	}
}

// Any concurrency is a number of lanes that River takes.
func TestLanes(t *testing.T) {
	for _, c := range []struct{ replicas, concurrency, want int }{
		{2, 0, 4}, {2, 1, 2}, {1, 2, 2}, {1, 64, 2}, {1, 65, 3}, {3, 129, 12}, {1, 1 << 20, 10_000}, {2, math.MaxInt, 10_000},
	} {
		if got := lanes(c.replicas, c.concurrency); got != c.want {
			t.Errorf("%d replicas, concurrency %d: %d lanes, want %d", c.replicas, c.concurrency, got, c.want)
		}
	}
}
