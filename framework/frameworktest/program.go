package frameworktest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/conversation/conversationtest"
	"github.com/ragpilot/ragpilot/framework"
)

// Ask sends messages to a wrapped model, whose inner one calls [Arrive] with the context that it gets.
type Ask func(ctx context.Context, messages []conversationtest.Message) error

// Wrap makes a wrapper of a model that is asked for one scope.
type Wrap func(pilot *contextpilot.Pilot, scope contextpilot.Scope) Ask

// Arrive says what has arrived at the model. An error is what the model is to fail with.
func Arrive(ctx context.Context, messages []conversationtest.Message) error {
	to := ctx.Value(arrivalKey{}).(*arrival)
	if to.fail {
		return errors.New("the model is not there")
	}
	to.messages = messages
	return nil
}

type arrivalKey struct{}

type arrival struct {
	messages []conversationtest.Message
	fail     bool
}

// New returns front ends that call what wrap makes.
func New(name string, wrap Wrap) conversationtest.New {
	return func(t testing.TB) conversationtest.Frontend {
		p := &program{t: t, name: name, wrap: wrap, fail: new(atomic.Bool)}
		p.Restart(false)
		return p
	}
}

type program struct {
	t      testing.TB
	name   string
	wrap   Wrap
	client conversationtest.Client
	pilot  *contextpilot.Pilot
	ask    Ask
	fail   *atomic.Bool
}

func (p *program) Name() string { return p.name }

func (p *program) Skips(cell string) string {
	for what, reason := range map[string]string{
		"restart with orders": "there is no store of orders", "cache marks": "they are the framework's",
		string(conversationtest.Off): "a setting of the sidecar", string(conversationtest.HeldOut): "a setting of the " +
			"sidecar", string(conversationtest.Shadow): "a setting of the sidecar",
	} {
		if strings.HasPrefix(cell, what) {
			return reason
		}
	}
	return ""
}

func (p *program) Restart(bool) {
	pilot, err := contextpilot.New(contextpilot.Config{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.pilot = pilot
	p.ask = p.wrap(pilot, p.scope())
}

func (p *program) FailNext() { p.fail.Store(true) }

func (p *program) As(client conversationtest.Client) conversationtest.Frontend {
	out := *p
	out.client = client
	out.ask = p.wrap(p.pilot, out.scope())
	return &out
}

func (p *program) scope() contextpilot.Scope {
	return contextpilot.Scope{Tenant: p.client.Tenant, Model: p.client.Model}
}

// conversation is the name of the conversation, another one for each client.
func (p *program) conversation() string {
	if p.client.Unnamed {
		return ""
	}
	return "script" + p.client.Tenant + p.client.Model
}

// Retrieve plans as the wrapper of a retriever does.
func (p *program) Retrieve(docs []conversationtest.Document) string {
	req := contextpilot.Request{Scope: p.scope()}
	for _, d := range docs {
		req.Blocks = append(req.Blocks, contextpilot.Block{ID: d.Label, Text: d.Text})
	}
	plan := p.pilot.Plan(req)
	plan.Session = p.conversation()
	framework.OffersOf(p.pilot).Offer(plan)
	var b strings.Builder
	for i := range plan.Items {
		b.WriteString(plan.RenderItem(i))
	}
	return b.String()
}

func (p *program) Send(messages []conversationtest.Message) ([]conversationtest.Message, error) {
	ctx := p.t.Context()
	if name := p.conversation(); name != "" {
		ctx = framework.WithConversation(ctx, name)
	}
	to := &arrival{fail: p.fail.Swap(false)}
	if err := p.ask(context.WithValue(ctx, arrivalKey{}, to), messages); err != nil {
		return nil, err
	}
	return to.messages, nil
}
