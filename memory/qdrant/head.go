package qdrant

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	api "github.com/qdrant/go-client/qdrant"

	"github.com/ragpilot/ragpilot/memory"
)

// headID is the point that says what is valid, in every collection of history and messages.
const headID = "6b7a1b1e-4f0c-5d1a-9a57-2f0e8b3c7d10"

// recent is how many commits a head remembers, so that one whose answer was lost is found to have been made even if
// others followed.
const recent = 32

// head is the state of the store. A point is valid if it bears no commit or that of the head, is not among gone, and, while a
// reset is not finished, is of the head's own number.
type head struct {
	number     int64           // counts commits
	commit     string          // the last one; no two have the same
	before     []string        // some commits before it, the latest last
	space      memory.Space    //
	dimensions []int           // lengths of vectors for which there are collections
	gone       []string        // IDs of points that the commit removed, until they are deleted
	wipe       bool            // the commit removed everything before it
	done       bool            // what it removed is deleted
	hidden     map[string]bool // gone
}

// ours reports whether this is the head after that commit, or a later one.
func (h *head) ours(commit string) bool {
	return h.commit == commit || slices.Contains(h.before, commit)
}

// next returns the head after another commit, with nothing removed.
func (h *head) next() *head {
	before := append(slices.Clone(h.before), h.commit)
	return &head{
		number: h.number + 1, commit: uuid.NewString(), before: before[max(0, len(before)-recent):],
		space: h.space, dimensions: slices.Clone(h.dimensions),
	}
}

// valid reports whether a point counts. Its payload must have been fetched with its number and commit.
func (h *head) valid(id string, payload map[string]*api.Value) bool {
	commit := payload[keyTx].GetStringValue()
	return (commit == "" || commit == h.commit) && !h.hidden[id] && (!h.wipe || payload[keyNumber].GetIntegerValue() >= h.number)
}

func (h *head) payload() map[string]*api.Value {
	dimensions := make([]*api.Value, len(h.dimensions))
	for i, d := range h.dimensions {
		dimensions[i] = api.NewValueInt(int64(d))
	}
	return map[string]*api.Value{
		"number": api.NewValueInt(h.number), keyCommit: api.NewValueString(h.commit), "before": stringList(h.before),
		"space": api.NewValueFromFields(map[string]*api.Value{
			"dimensions": api.NewValueInt(int64(h.space.Dimensions)),
			"embedder":   api.NewValueString(h.space.Embedder),
		}),
		"lengths":  api.NewValueFromList(dimensions...),
		"gone":     stringList(h.gone),
		"wipe":     api.NewValueBool(h.wipe),
		"finished": api.NewValueBool(h.done),
	}
}

func headOf(payload map[string]*api.Value) *head {
	space := payload["space"].GetStructValue().GetFields()
	h := &head{
		number: payload["number"].GetIntegerValue(), commit: payload[keyCommit].GetStringValue(), before: stringsOf(payload["before"]),
		space: memory.Space{Dimensions: int(space["dimensions"].GetIntegerValue()), Embedder: space["embedder"].GetStringValue()},
		gone:  stringsOf(payload["gone"]), wipe: payload["wipe"].GetBoolValue(), done: payload["finished"].GetBoolValue(),
		hidden: map[string]bool{},
	}
	for _, v := range payload["lengths"].GetListValue().GetValues() {
		h.dimensions = append(h.dimensions, int(v.GetIntegerValue()))
	}
	for _, id := range h.gone {
		h.hidden[id] = true
	}
	return h
}

// errNoHead: somebody removed it, or is making it.
var errNoHead = errors.New("the collection has no head point; was it made by something else?")

// head reads the head.
func (b *Backend) head(ctx context.Context) (*head, error) {
	points, err := call(ctx, b, "read head", b.client.Get, &api.GetPoints{
		CollectionName: b.opts.Collection, Ids: []*api.PointId{api.NewIDUUID(headID)}, WithPayload: api.NewWithPayloadEnable(true),
	})
	if err != nil {
		return nil, err
	}
	if len(points) == 0 {
		return nil, fmt.Errorf("qdrant: %q: %w", b.opts.Collection, errNoHead)
	}
	h := headOf(points[0].GetPayload())
	b.remember(h)
	return h, nil
}

// remember keeps the newest head.
func (b *Backend) remember(h *head) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == nil || h.number >= b.last.number {
		b.last = h
	}
}

// known returns the head read last, or reads it.
func (b *Backend) known(ctx context.Context) (*head, error) {
	b.mu.Lock()
	h := b.last
	b.mu.Unlock()
	if h != nil {
		return h, nil
	}
	return b.head(ctx)
}

// makeHead writes the first head if there is none. The condition, which nothing meets, keeps one that another process
// has written meanwhile.
func (b *Backend) makeHead(ctx context.Context) error {
	_, err := b.head(ctx)
	if !errors.Is(err, errNoHead) {
		return err
	}
	first := head{commit: uuid.NewString(), done: true}
	_, err = call(ctx, b, "write the first head", b.client.Upsert, &api.UpsertPoints{
		CollectionName: b.opts.Collection, Wait: new(true), UpdateFilter: &api.Filter{Must: []*api.Condition{api.NewMatch(keyTx, headID)}},
		Points: []*api.PointStruct{{Id: api.NewIDUUID(headID), Payload: first.payload(), Vectors: noVectors()}},
	})
	if err != nil {
		return err
	}
	_, err = b.head(ctx)
	return err
}

// swap replaces the head if its commit is still that of h. Whether it did is seen by reading it again.
func (b *Backend) swap(ctx context.Context, h *head, payload map[string]*api.Value) error {
	return done(ctx, b, "write head", b.client.SetPayload, &api.SetPayloadPoints{
		CollectionName: b.opts.Collection, Wait: new(true), Payload: payload,
		PointsSelector: api.NewPointsSelectorFilter(&api.Filter{Must: []*api.Condition{
			api.NewHasID(api.NewIDUUID(headID)), api.NewMatch(keyCommit, h.commit),
		}}),
	})
}
