package qdrant

import (
	"context"
	"slices"

	api "github.com/qdrant/go-client/qdrant"

	"github.com/ragpilot/ragpilot/memory"
)

// log returns the messages of a log, read from the server at its first use.
func (t *tx) log(ctx context.Context, log memory.Log) (*[]message, error) {
	if have := t.logs[log]; have != nil {
		return have, nil
	}
	messages := []message{}
	q := query{collection: t.b.opts.Collection, must: inLog(log)}
	err := t.b.each(ctx, t.head, q, func(p *api.RetrievedPoint) error {
		messages = append(messages, message{messageOf(p.GetPayload()), p.GetId().GetUuid(), p.GetPayload()[keyPlace].GetStringValue()})
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(messages, byPlace)
	t.logs[log] = &messages
	return &messages, nil
}

// cut removes messages from the beginning of a log.
func (t *tx) cut(messages *[]message, n int) {
	for _, m := range (*messages)[:n] {
		if m.point != "" {
			t.gone = append(t.gone, m.point)
		}
	}
	*messages = (*messages)[n:]
}

// SetMessages replaces a log.
func (t *tx) SetMessages(ctx context.Context, log memory.Log, messages []memory.Message) error {
	have, err := t.log(ctx, log)
	if err != nil {
		return err
	}
	t.cut(have, len(*have))
	return t.AppendMessages(ctx, log, messages, 0)
}

// AppendMessages adds to a log.
func (t *tx) AppendMessages(ctx context.Context, log memory.Log, messages []memory.Message, keep int) error {
	have, err := t.log(ctx, log)
	if err != nil {
		return err
	}
	for _, m := range messages {
		m.Extra = slices.Clone(m.Extra)
		*have = append(*have, message{Message: m, place: t.place()})
	}
	if keep > 0 && len(*have) > keep {
		t.cut(have, len(*have)-keep)
	}
	return nil
}

// DropMessages removes logs.
func (t *tx) DropMessages(ctx context.Context, kind string, scope memory.Scope) error {
	q := query{
		collection: t.b.opts.Collection, fields: []string{"log", keyUser, keyAgent, keyRun},
		must: covered(scope, api.NewMatch(keyKind, kindMessage)),
	}
	stored := map[memory.Log][]string{}
	err := t.b.each(ctx, t.head, q, func(p *api.RetrievedPoint) error {
		log := memory.Log{Kind: p.GetPayload()["log"].GetStringValue(), Scope: scopeOf(p.GetPayload())}
		if log.Kind == kind {
			stored[log] = append(stored[log], p.GetId().GetUuid())
		}
		return nil
	})
	if err != nil {
		return err
	}
	for log, points := range stored {
		if t.logs[log] == nil {
			t.gone = append(t.gone, points...)
			t.logs[log] = &[]message{}
		}
	}
	for log, have := range t.logs {
		if log.Kind == kind && scope.Covers(log.Scope) {
			t.cut(have, len(*have))
		}
	}
	return nil
}
