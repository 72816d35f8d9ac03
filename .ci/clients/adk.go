package clients

import (
	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/model"
	"google.golang.org/adk/model/gemini"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"
	"google.golang.org/genai"
)

// worker is a program of ADK, asked as one user in one session.
type worker struct {
	*Run
	config  llmagent.Config
	service session.Service
	name    string
	text    string
}

func newWorker(r *Run, text string, list []Tool) *worker {
	w := &worker{Run: r, text: text, service: session.InMemoryService(), name: "1"}
	w.config = llmagent.Config{Name: "helper", Instruction: text, Tools: adkTools(list)}
	w.config.Model = must(gemini.NewModel(r, "gemini-2.5-flash", &genai.ClientConfig{
		APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: r.URL},
	}))
	return w
}

func adkTools(list []Tool) (out []tool.Tool) {
	for _, t := range list {
		out = append(out, adkTool(t, InOrder(len(t.Props))))
	}
	return out
}

// adkTool is a tool whose properties come in an order.
func adkTool(t Tool, order []int) tool.Tool {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	for _, p := range Pick(t.Props, order) {
		one := &jsonschema.Schema{Type: p.Type, Description: p.Description}
		for _, e := range p.Enum {
			one.Enum = append(one.Enum, e)
		}
		s.Properties[p.Name] = one
		s.PropertyOrder = append(s.PropertyOrder, p.Name)
	}
	for _, p := range Pick(t.Props, order) {
		if p.Required {
			s.Required = append(s.Required, p.Name)
		}
	}
	return must(functiontool.New(functiontool.Config{Name: t.Name, Description: t.Description, InputSchema: s},
		func(tool.Context, map[string]any) (map[string]any, error) { //nolint:staticcheck // its replacement is not in 1.4.0
			return map[string]any{"found": 3, "list": podList}, nil
		}))
}

// say sends what a user says, with changes of the state.
func (w *worker) say(content *genai.Content, state map[string]any) {
	a := must(llmagent.New(w.config))
	r := must(runner.New(runner.Config{AppName: "app", Agent: a, SessionService: w.service, AutoCreateSession: true}))
	var options []runner.RunOption
	if state != nil {
		options = append(options, runner.WithStateDelta(state))
	}
	for _, err := range r.Run(w, "ana", w.name, content, agent.RunConfig{}, options...) {
		check(err)
	}
}

func (w *worker) turn(n int, state map[string]any) {
	w.say(genai.NewContentFromText(ask(w.text, n), genai.RoleUser), state)
}

// only asks in a session of its own.
func (w *worker) only(n int, state map[string]any) {
	w.name += "1"
	w.turn(n, state)
}

// instruct sets a system text in which braces have no meaning.
func (w *worker) instruct(text string) {
	w.config.InstructionProvider = func(agent.ReadonlyContext) (string, error) { return text, nil }
}

// converse asks the last of several questions; the others were answered.
func (w *worker) converse(questions []string) {
	last := len(questions) - 1
	w.before(func(req *model.LLMRequest) {
		contents := make([]*genai.Content, 0, 2*last+len(req.Contents))
		for _, q := range questions[:last] {
			contents = append(contents, genai.NewContentFromText(q, genai.RoleUser), genai.NewContentFromText(answered, genai.RoleModel))
		}
		req.Contents = append(contents, req.Contents...)
	})
	w.say(genai.NewContentFromText(questions[last], genai.RoleUser), nil)
}

func instruction(line, against int, cause string) []Label {
	return []Label{{Line: line, Against: against, Cause: cause, Path: "systemInstruction.parts[0].text"}}
}

// before changes each request before it is sent.
func (w *worker) before(change func(*model.LLMRequest)) {
	w.config.BeforeModelCallbacks = append(w.config.BeforeModelCallbacks,
		func(_ agent.CallbackContext, req *model.LLMRequest) (*model.LLMResponse, error) {
			change(req)
			return nil, nil
		})
}

var adkCases = []Case{
	{Name: "adk-time-in-the-state", Run: func(r *Run) {
		w := newWorker(r, "Now: {now}\n"+opsText, opsTools)
		for n := range 2 {
			w.turn(n, map[string]any{"now": If(r.Sick, r.Time(n), r.Time(0)).Format("2006-01-02 15:04:05 -0700 MST")})
		}
	}, Want: instruction(2, 1, "clock")},
	{Name: "adk-trace-in-the-state", Run: func(r *Run) {
		w := newWorker(r, travelText+"\nTrace {trace}.", travelTools)
		newWorker(r, cookText, nil).turn(0, nil)
		for n := range 2 {
			w.only(n, map[string]any{"trace": If(r.Sick, r.UUID(), "none")})
		}
	}, Want: instruction(3, 2, "random-id")},
	{Name: "adk-name-in-the-state", Run: func(r *Run) {
		w := newWorker(r, deskText+"\nThe customer's name is {user:name}.", nil)
		for n, name := range []string{"Beatrix Lund", "Omar Haddad"} {
			w.only(n, map[string]any{"user:name": If(r.Sick, name, "unknown")})
		}
	}, Want: instruction(2, 1, "user-name")},
	{Name: "adk-counter-in-the-state", Run: func(r *Run) {
		w := newWorker(r, reviewText+"\nQuestions so far: {count}.", nil)
		for n := range 3 {
			w.turn(n, map[string]any{"count": If(r.Sick, n+4, 4)})
		}
	}, Want: append(instruction(2, 1, "counter"), instruction(3, 2, "counter")...)},
	{Name: "adk-tools-of-a-map", Run: func(r *Run) {
		w := newWorker(r, opsText, opsTools)
		w.only(0, nil)
		w.config.Tools = adkTools(Pick(opsTools, If(r.Sick, []int{0, 2, 1, 4, 3}, InOrder(5))))
		w.only(1, nil)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "tool-order", Path: "tools[0].functionDeclarations[1]"}}},
	{Name: "adk-a-tool-more", Run: func(r *Run) {
		w := newWorker(r, deskText, deskTools[:3])
		w.turn(0, nil)
		w.config.Tools = adkTools(If(r.Sick, deskTools, deskTools[:3]))
		w.turn(1, nil)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "tool-set", Path: "tools[0].functionDeclarations[3]"}}},
	// genai writes properties sorted, whatever their order was; what is required stays in the order of the map.
	{Name: "adk-required-of-a-map", Run: func(r *Run) {
		w := newWorker(r, opsText, opsTools)
		for n := range 2 {
			w.config.Tools[4] = adkTool(opsTools[4], r.order(n, 3))
			w.only(n, nil)
		}
	}, Want: []Label{{Line: 2, Against: 1, Cause: "map-order", Path: "tools[0].functionDeclarations[4].parametersJsonSchema.required"}}},
	{Name: "adk-oldest-contents-dropped", Run: func(r *Run) {
		w := newWorker(r, cookText, nil)
		if r.Sick {
			w.before(func(req *model.LLMRequest) {
				if n := len(req.Contents); n > 5 {
					req.Contents = req.Contents[n-5:]
				}
			})
		}
		for n := range 4 {
			w.turn(n, nil)
		}
	}, Want: []Label{{Line: 4, Against: 3, Cause: "edited-history", Path: "contents[0]", Within: true}}},
	{Name: "adk-result-of-a-tool-cut", Run: func(r *Run) {
		w := newWorker(r, opsText, opsTools)
		r.Script(Answer{Calls: []Call{{"", "list_pods", `{"namespace":"shop"}`}}}, Answer{Text: "One pod of checkout restarts."})
		w.turn(0, nil)
		if r.Sick {
			w.before(func(req *model.LLMRequest) {
				for _, p := range req.Contents[2].Parts {
					p.FunctionResponse.Response = map[string]any{"found": 3, "list": podList[:60] + " (shortened)"}
				}
			})
		}
		w.turn(1, nil)
	}, Want: []Label{{Line: 3, Against: 2, Cause: "edited-history", Path: "contents[2]", Within: true}}},
	{Name: "adk-picture-encoded-again", Run: func(r *Run) {
		w := newWorker(r, deskText, nil)
		w.say(genai.NewContentFromParts([]*genai.Part{
			genai.NewPartFromText("What is this?"),
			genai.NewPartFromBytes(picture(4, 90), "image/jpeg"),
		}, genai.RoleUser), nil)
		if r.Sick {
			w.before(func(req *model.LLMRequest) {
				req.Contents[0].Parts[1] = genai.NewPartFromBytes(picture(4, 70), "image/jpeg")
			})
		}
		w.turn(1, nil)
	}, Want: []Label{{Line: 2, Against: 1, Cause: "image", Path: "contents[0].parts[1].inlineData.data"}}},
	{Name: "adk-a-rule-more", Run: func(r *Run) {
		w := newWorker(r, travelText, travelTools)
		w.only(0, nil)
		w.config.Instruction = If(r.Sick, travelText+"\nMention strikes if there are any.", travelText)
		w.only(1, nil)
	}, Want: instruction(2, 1, "template")},
}
