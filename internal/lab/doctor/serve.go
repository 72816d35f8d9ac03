package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/ragpilot/ragpilot/engines/openai"
)

// sidecar examines a `ragpilot serve`: it is alive, it is ready, and a request through it arrives at this engine.
func (x *exam) sidecar(ctx context.Context) {
	if x.cfg.Serve == "" {
		return
	}
	server := openai.Config{
		BaseURL: x.cfg.Serve, Model: x.model, APIKey: x.cfg.ServeAPIKey, HTTPClient: &http.Client{Transport: x.seen.next},
		IDs: openai.IDHeader,
	}
	chats, err := openai.New(server)
	if err != nil {
		x.add("sidecar", Problem, err.Error(), "correct --serve")
		return
	}
	at := redacted(x.cfg.Serve)
	if _, err := chats.Do(ctx, http.MethodGet, "/healthz", nil); err != nil {
		do := "start ragpilot serve, or correct --serve"
		if _, ok := errors.AsType[*openai.StatusError](err); ok {
			do = "give the address of ragpilot serve: something else answers there"
		}
		x.add("sidecar", Problem, at+": "+short(err), do)
		return
	}
	x.add("sidecar", OK, at+"/healthz: 200", "")
	if _, err := chats.Do(ctx, http.MethodGet, "/readyz", nil); err != nil {
		x.add("sidecar ready", Problem, short(err), "it is starting or stopping: ask again, or start it")
		return
	}
	x.add("sidecar ready", OK, "/readyz: 200", "")
	x.through(ctx, chats)
}

// through sends the probe that the engine has cached by now: if it is found there, it went to this engine, unchanged.
func (x *exam) through(ctx context.Context, chats *openai.Engine) {
	const name = "through the sidecar"
	if x.second.sent == "" || x.second.err != nil {
		x.add(name, NotKnown, "no probe that the engine has answered", "")
		return
	}
	a := x.askAt(ctx, chats, x.text, nil)
	status, refused := errors.AsType[*openai.StatusError](a.err)
	switch {
	case refused && status.Code == http.StatusNotFound:
		x.add(name, NotKnown, "no chats at this address: it seems to be the admin address",
			"give the main address (port 8765 unless set) to see a request pass")
	case refused && status.Code == http.StatusUnauthorized:
		x.add(name, Problem, short(a.err), "give --serve-api-key")
	case a.err != nil:
		x.add(name, Problem, short(a.err), "look at --infer-api-url of the sidecar and at its log")
	case !a.usage.CachedKnown || !x.second.usage.CachedKnown:
		x.add(name, OK, "a probe was answered; by which engine is not known without token details", "")
	case a.usage.CachedTokens < x.second.usage.CachedTokens/2:
		x.add(name, Problem,
			fmt.Sprintf("%d of %d tokens cached, %d when asked directly: another engine answers, or the prompt is changed on its way",
				a.usage.CachedTokens, a.usage.PromptTokens, x.second.usage.CachedTokens), "set the sidecar's --infer-api-url to this engine")
	default:
		x.add(name, OK, fmt.Sprintf("the probe arrived at this engine: %d of %d tokens cached", a.usage.CachedTokens, a.usage.PromptTokens), "")
	}
}
