package engines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ragpilot/ragpilot/contextpilot"
)

// Score is what one replica offers for a request.
type Score struct {
	Replica string
	Match   contextpilot.Match
	Pending int // prefill tokens that wait there
	// Cost is in prefill tokens, see [Router]; the lowest is best. It can be negative.
	Cost float64
	// Full: the replica would exceed its share of prefill, see [RouterOptions.MaxShare].
	Full bool
	// Rating is the cost as gateways' scorers give theirs: 1 for the cheapest replica, 0 for the dearest, and in between by
	// cost. Those that are full have 0 and do not count, unless all are.
	Rating float64
}

// Scores returns what every replica that is up offers for a request, by name, and changes nothing. It is for operators whose
// own gateway routes. The scope's Replica is filled in.
func (r *Router) Scores(req contextpilot.Request) []Score {
	up := r.up(nil)
	matches := r.match(req, up)
	r.mu.Lock()
	scores := make([]Score, len(up))
	for i, rep := range up {
		scores[i] = r.weigh(rep, matches[i], len(up))
	}
	r.mu.Unlock()
	rate(scores)
	return scores
}

// rate fills in the ratings, among those that are not full, unless all are.
func rate(scores []Score) {
	var among []*Score
	for _, full := range []bool{false, true} {
		for i := range scores {
			if scores[i].Full == full {
				among = append(among, &scores[i])
			}
		}
		if len(among) > 0 {
			break
		}
	}
	if len(among) == 0 {
		return
	}
	low, high := among[0].Cost, among[0].Cost
	for _, s := range among {
		low, high = min(low, s.Cost), max(high, s.Cost)
	}
	for _, s := range among {
		s.Rating = 1
		if high > low {
			s.Rating = (high - s.Cost) / (high - low)
		}
	}
}

// up returns the replicas that are up, without those of the given names.
func (r *Router) up(except []string) []*replica {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]*replica, 0, len(r.replicas))
	for _, rep := range r.replicas {
		if !rep.down && !slices.Contains(except, rep.name) {
			out = append(out, rep)
		}
	}
	return out
}

func (r *Router) match(req contextpilot.Request, replicas []*replica) []contextpilot.Match {
	names := make([]string, len(replicas))
	for i, rep := range replicas {
		names[i] = rep.name
	}
	return r.opt.Pilot.MatchReplicas(req, names...)
}

// mayLead is how far a replica may lead while the window fills, as a share of the tokens that are to come and can even it
// out. Without it the first conversation of a router would move on with every turn; with more of it, what comes must be like
// what was.
const mayLead = 0.1

// weigh computes a replica's cost among n. r.mu is held.
func (r *Router) weigh(rep *replica, m contextpilot.Match, n int) Score {
	s := Score{Replica: rep.name, Match: m, Pending: rep.pending}
	left := m.Prompt - m.Tokens
	s.Cost = float64(left)*r.window.price(rep, n) +
		r.opt.Queue*float64(rep.pending) - r.opt.Affinity*r.window.keeps(rep)*float64(max(m.Familiar-m.Tokens, 0))
	s.Full = n > 1 && float64(n*(r.window.of(rep)+left)) > r.opt.MaxShare*float64(r.window.total+left)+mayLead*r.window.toCome()
	return s
}

// Route is a request's way to a replica. First and Done must be called, so that the router knows the replica's load.
// Their calls are safe for concurrent use.
type Route struct {
	// Plan is for the replica's scope.
	Plan contextpilot.Plan
	// Score is what the replica offered, without a rating.
	Score Score
	// Engine is the replica's; nil if it was added without one.
	Engine Engine

	router  *Router
	replica *replica
	// guarded by the router's mu
	share   *share
	waiting int  // tokens in replica.pending
	begun   bool // First was called
	trial   bool // of a replica that has rested
	done    sync.Once
}

// Route chooses the replica for a request and plans it there. The scope's Replica is filled in. The error is [ErrNoReplica]. except
// names replicas that are not to be chosen, such as those that have just failed; if there are no others it is ErrNoReplica, too.
func (r *Router) Route(req contextpilot.Request, except ...string) (*Route, error) {
	for {
		replicas := r.up(except)
		if len(replicas) == 0 {
			return nil, fmt.Errorf("engines: route: %w", ErrNoReplica)
		}
		rt := r.take(replicas, r.match(req, replicas))
		if rt == nil {
			continue // all of them have gone meanwhile
		}
		req.Scope.Replica = rt.Score.Replica
		rt.Plan = r.opt.Pilot.Plan(req)
		r.follow(rt)
		return rt, nil
	}
}

// take books the request on the best of the replicas that are still there; nil: none is.
func (r *Router) take(replicas []*replica, matches []contextpilot.Match) *Route {
	r.mu.Lock()
	defer r.mu.Unlock()
	up := 0
	for _, rep := range r.replicas {
		if !rep.down {
			up++
		}
	}
	var best *replica
	var score Score
	for i, rep := range replicas {
		if !rep.in || rep.down {
			continue
		}
		if s := r.weigh(rep, matches[i], up); best == nil || r.better(s, rep, score, best) {
			best, score = rep, s
		}
	}
	if best == nil {
		return nil
	}
	left := score.Match.Prompt - score.Match.Tokens
	best.pending += left
	best.under++
	trial := !best.rest.IsZero() && !best.resting(r.now)
	best.trial = best.trial || trial
	return &Route{
		Score: score, Engine: best.engine, router: r, replica: best, share: r.window.add(best, left, score.Match.Prompt), waiting: left,
		trial: trial,
	}
}

// better reports whether a is chosen before b. r.mu is held.
func (r *Router) better(a Score, ra *replica, b Score, rb *replica) bool {
	if x, y := ra.resting(r.now), rb.resting(r.now); x != y {
		return y
	}
	if a.Full != b.Full {
		return b.Full
	}
	if a.Full || a.Cost == b.Cost {
		return r.window.of(ra) < r.window.of(rb)
	}
	return a.Cost < b.Cost
}

// follow notes where the plan's events belong.
func (r *Router) follow(rt *Route) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rt.replica.sent.Put(rt.Plan.RequestID, followed{rt.Plan.Scope, rt.share})
}

// First reports that the answer has begun: its prompt is computed. Calls after the first do nothing.
func (rt *Route) First() {
	rt.router.mu.Lock()
	defer rt.router.mu.Unlock()
	if !rt.begun {
		rt.begun = true
		rt.replica.answered()
	}
	rt.settle()
}

// settle takes the request out of what waits. The router's mu is held.
func (rt *Route) settle() {
	rt.replica.pending -= rt.waiting
	rt.waiting = 0
}

// Done reports that the answer has ended, and how. Tokens that the engine reports as read from its cache correct what
// was expected. An error before the answer began means that the engine did not compute the request: it is taken back, see
// [contextpilot.Gone]. Calls after the first do nothing.
func (rt *Route) Done(u Usage, err error) {
	rt.done.Do(func() {
		if rt.end(u, err) {
			rt.router.opt.Pilot.Observe(contextpilot.Event{Kind: contextpilot.Gone, Scope: rt.Plan.Scope, Request: rt.Plan.RequestID})
		}
	})
}

// A replica that fails failuresToRest requests in a row is passed over for a while, which doubles with each further failure. Then
// one request tries it, and the others pass it over until its answer begins or it has failed. What callers gave up is no failure,
// nor are requests that are to blame themselves, see [ofRequest].
const (
	failuresToRest = 3
	firstRest      = time.Second
	longestRest    = 30 * time.Second
)

func (rep *replica) resting(now func() time.Time) bool {
	return !rep.rest.IsZero() && (rep.trial || now().Before(rep.rest))
}

// ofRequest reports whether an error says that the request is to blame: it has a method OfRequest, as that of engines/openai has.
func ofRequest(err error) bool {
	e, ok := errors.AsType[interface {
		error
		OfRequest() bool
	}](err)
	return ok && e.OfRequest()
}

// answered notes that the replica computes what it is given: an answer has begun, or ended.
func (rep *replica) answered() { rep.failed, rep.rest, rep.trial = 0, time.Time{}, false }

// fails notes that a request failed before its answer began. Several that were under way and fail together are one failure to a
// replica that rests already.
func (rep *replica) fails(now time.Time) {
	if now.Before(rep.rest) {
		return
	}
	rep.failed++
	if n := rep.failed - failuresToRest; n >= 0 {
		rep.rest = now.Add(min(firstRest<<min(n, 10), longestRest))
	}
}

// end settles the books, and reports whether the request never reached the engine.
func (rt *Route) end(u Usage, err error) (unsent bool) {
	r := rt.router
	r.mu.Lock()
	defer r.mu.Unlock()
	rt.settle()
	rt.replica.under--
	if rt.trial {
		rt.replica.trial = false
	}
	unsent = err != nil && !rt.begun && !errors.Is(err, ErrInterrupted)
	gaveUp := errors.Is(err, errAbandoned) || errors.Is(err, context.Canceled)
	late := errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnreachable) // the caller's deadline, not a client's own
	// An answer that has begun and breaks off says nothing: the caller may take no more of it.
	switch {
	case err == nil:
		rt.replica.answered()
	case !rt.begun && !gaveUp && !late && !ofRequest(err):
		rt.replica.fails(r.now())
	}
	switch {
	case unsent:
		if gaveUp { // else it stays booked: a replica that fails all that it is given is not the idlest
			r.window.correct(rt.share, 0)
		}
		rt.replica.sent.Delete(rt.Plan.RequestID)
	case u.CachedKnown && u.PromptTokens > 0:
		r.window.correct(rt.share, max(u.PromptTokens-u.CachedTokens, 0))
	}
	return unsent
}

// Do routes a request, sends it, and returns the answer. build makes the engine's request of a plan, with its RequestID as ID; it is
// called again, with another plan, for each replica that is tried.
//
// Another replica is tried as long as no piece of an answer has come and ctx has not ended, none twice, and only
//
//   - after [ErrNotTaken]: nothing was read of the request, or the engine has no room for it now;
//   - after any other [ErrUnreachable] that is no timeout, once: the request may have been read, and may be what broke the engine.
//     So a prompt that crashes engines costs two of them at most.
//
// A request may be held back before it is sent, see [HoldOptions].
//
// Everything else is returned at once, also a timeout ([os.ErrDeadlineExceeded]): the replica may be slow because all
// are. A replica that was unreachable, but for a timeout, is down until [Router.SetUp] says otherwise, and its index is
// dropped; one that refused or was slow stays as it is.
//
// Errors are those of engines. When no replica is left to try, that of one that is up and refused comes first; if none did,
// it is [ErrNoReplica] together with the last replica's own.
func (r *Router) Do(ctx context.Context, req contextpilot.Request, build func(*contextpilot.Plan) Request,
	onText func(string) error,
) (Response, error) {
	var tried []string
	var last error
	read := false // a replica may have read it
	for {
		rt, err := r.Route(req, tried...)
		switch {
		case err == nil:
		case errors.Is(last, ErrRefused):
			return Response{}, last
		default:
			return Response{}, errors.Join(err, last)
		}
		resp, begun, err := rt.run(ctx, build, onText)
		if heldInVain(err) && ctx.Err() == nil {
			continue
		}
		unread, unreachable := errors.Is(err, ErrNotTaken), errors.Is(err, ErrUnreachable)
		broke := unreachable && (unread || !errors.Is(err, os.ErrDeadlineExceeded))
		if begun || ctx.Err() != nil || !unread && !broke {
			return resp, err
		}
		if broke {
			r.lost(rt.replica)
		}
		if !unread && read {
			return resp, err
		}
		read = read || !unread
		tried = append(tried, rt.Score.Replica)
		if !errors.Is(last, ErrRefused) {
			last = err
		}
	}
}

// lost marks a replica as down, if it is still there: another one may have its name by now.
func (r *Router) lost(rep *replica) {
	r.mu.Lock()
	lost := r.setUp(rep, false)
	r.mu.Unlock()
	if lost {
		r.forget(rep)
	}
}

// errAbandoned ends a request that was not sent, or whose caller has panicked.
var errAbandoned = errors.New("abandoned")

// run sends the request; begun says that a piece of an answer has come.
func (rt *Route) run(ctx context.Context, build func(*contextpilot.Plan) Request, onText func(string) error) (resp Response, begun bool,
	err error,
) {
	defer rt.Done(Usage{}, errAbandoned) // does nothing after the one below
	if rt.Engine == nil {
		return resp, false, fmt.Errorf("engines: replica %q has no engine", rt.Score.Replica)
	}
	req := build(&rt.Plan)
	pass, err := rt.enter(ctx, &req)
	if err != nil {
		return resp, false, err
	}
	defer pass.Done(false, -1) // does nothing after the one below
	resp, err = rt.Engine.Generate(ctx, req, func(piece string) error {
		if !begun {
			begun = true
			rt.First()
			pass.First()
		}
		if onText == nil {
			return nil
		}
		return onText(piece)
	})
	rt.Done(resp.Usage, err)
	endPass(pass, resp.Usage, err)
	return resp, begun, err
}
