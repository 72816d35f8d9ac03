package clients

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"
	"github.com/tmc/langchaingo/llms"
	langopenai "github.com/tmc/langchaingo/llms/openai"
	orderedmap "github.com/wk8/go-ordered-map/v2"

	"github.com/ragpilot/ragpilot/stabilise"
)

// startEngine starts a real llama-server whose template renders tools, and returns its address. .ci/clients.sh says where it is.
func startEngine(t *testing.T) string {
	t.Helper()
	program, model := os.Getenv("RAGPILOT_LLAMA_SERVER"), os.Getenv("RAGPILOT_LLAMA_MODEL")
	if program == "" || model == "" {
		t.Skip("RAGPILOT_LLAMA_SERVER and RAGPILOT_LLAMA_MODEL name no engine")
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	listener.Close()
	var log bytes.Buffer
	ctx, stop := context.WithCancel(context.Background())
	p := exec.CommandContext(ctx, program, "-m", model, "--host", host, "--port", port, "-t", "2", "-c", "16384", "--parallel", "1",
		"--cache-ram", "0",
		"--jinja", "--chat-template-file", "testdata/tools.jinja")
	p.Stdout, p.Stderr, p.WaitDelay = &log, &log, time.Second
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = p.Wait()
	})
	address := "http://" + net.JoinHostPort(host, port)
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/health", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return address
			}
		}
	}
	t.Fatalf("llama-server is not ready: %s", &log)
	return ""
}

// usage is what an engine says of one request.
type usage struct{ prompt, cached int }

// registry keeps tools as agents often do.
func registry() map[string]Tool {
	m := map[string]Tool{}
	for _, t := range slices.Concat(deskTools, opsTools, travelTools) {
		m[t.Name] = t
	}
	return m
}

// ranged returns the keys of a map in its own order, as range gives them, or sorted.
func ranged[V any](m map[string]V, inOrder bool) []string {
	if inOrder {
		return slices.Sorted(maps.Keys(m))
	}
	return slices.Collect(maps.Keys(m))
}

func props(t Tool) map[string]Prop {
	m := map[string]Prop{}
	for _, p := range t.Props {
		m[p.Name] = p
	}
	return m
}

// viaLangchain asks once by langchaingo; the schema is JSON that the program writes while it ranges over a map.
func viaLangchain(ctx context.Context, address string, client *http.Client, question string, inOrder bool) usage {
	tools, list := registry(), []llms.Tool{}
	for _, name := range ranged(tools, inOrder) {
		t := tools[name]
		var order []int
		for _, p := range ranged(props(t), inOrder) {
			order = append(order, slices.IndexFunc(t.Props, func(q Prop) bool { return q.Name == p }))
		}
		list = append(list, langchainTools([]Tool{t}, func(_ int, t Tool) any { return t.RawSchema(order) })...)
	}
	m := must(langopenai.New(langopenai.WithBaseURL(address+"/v1"), langopenai.WithToken("k"), langopenai.WithModel("tiny"),
		langopenai.WithHTTPClient(client)))
	out := must(m.GenerateContent(ctx, []llms.MessageContent{
		llms.TextParts(llms.ChatMessageTypeSystem, deskText), llms.TextParts(llms.ChatMessageTypeHuman, question),
	}, llms.WithTools(list), llms.WithMaxTokens(1)))
	info := out.Choices[0].GenerationInfo
	return usage{info["PromptTokens"].(int), info["PromptCachedTokens"].(int)}
}

// viaEino asks once by Eino; the program fills the schema while it ranges over a map.
func viaEino(ctx context.Context, address string, client *http.Client, question string, inOrder bool) usage {
	tools, list := registry(), []*schema.ToolInfo{}
	for _, name := range ranged(tools, inOrder) {
		members := props(tools[name])
		s := &jsonschema.Schema{Type: "object", Properties: orderedmap.New[string, *jsonschema.Schema]()}
		for _, p := range ranged(members, inOrder) {
			s.Properties.Set(p, &jsonschema.Schema{Type: members[p].Type, Description: members[p].Description})
			if members[p].Required {
				s.Required = append(s.Required, p)
			}
		}
		list = append(list, &schema.ToolInfo{Name: name, Desc: tools[name].Description, ParamsOneOf: schema.NewParamsOneOfByJSONSchema(s)})
	}
	one := 1
	m := must(openai.NewChatModel(ctx, &openai.ChatModelConfig{
		BaseURL: address + "/v1", APIKey: "k", Model: "tiny", MaxTokens: &one,
		HTTPClient: client,
	}))
	out := must(must(m.WithTools(list)).Generate(ctx, []*schema.Message{schema.SystemMessage(deskText), schema.UserMessage(question)}))
	u := out.ResponseMeta.Usage
	return usage{u.PromptTokens, u.PromptTokenDetails.CachedTokens}
}

// stabilised returns a client behind package stabilise, with the rules for tools.
func stabilised(t *testing.T) *http.Client {
	t.Helper()
	s, err := stabilise.New(stabilise.Config{Rules: stabilise.Rules{Tools: true, Schemas: true}})
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: stabilising{s}}
}

type stabilising struct{ *stabilise.Stabiliser }

func (s stabilising) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	body = s.Body(stabilise.Chat, stabilise.Conversation{}, body).Body
	sent := r.Clone(r.Context())
	sent.Body, sent.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return http.DefaultTransport.RoundTrip(sent)
}

// What a map in a program costs on a real engine: the share of prompt tokens that are in its cache.
func TestSharesOnAnEngine(t *testing.T) {
	address := startEngine(t)
	const requests = 5
	for _, c := range []struct {
		name string
		ask  func(ctx context.Context, address string, client *http.Client, question string, inOrder bool) usage
	}{{"langchaingo", viaLangchain}, {"Eino", viaEino}} {
		share := func(client *http.Client, inOrder bool) float64 {
			var sum usage
			for n := range requests {
				u := c.ask(t.Context(), address, client, ask(deskText, n), inOrder)
				if n > 0 { // the first finds an empty cache, or that of another program
					sum.prompt, sum.cached = sum.prompt+u.prompt, sum.cached+u.cached
				}
			}
			return float64(sum.cached) / float64(sum.prompt)
		}
		a, b := share(http.DefaultClient, false), share(http.DefaultClient, true)
		line := fmt.Sprintf("%s, %d tools: from the cache: %.1f %% with tools and properties in the order of maps, %.1f %% sorted", c.name,
			len(registry()), 100*a, 100*b)
		if b < 0.9 || a > b/2 {
			t.Errorf("%s", line)
		}
		s := share(stabilised(t), false)
		line += fmt.Sprintf(", %.1f %% in the order of maps behind the stabiliser", 100*s)
		if s < 0.9*b {
			t.Errorf("%s", line)
		}
		t.Log(line)
	}
}
