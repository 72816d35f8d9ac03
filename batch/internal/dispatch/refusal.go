package dispatch

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"
)

// doubt is about the first refusals of a replica that has answered nothing yet: is each of these requests wrong, or what all have in
// common, such as an option? They are held back. The first answer shows that the requests are to blame, and so does a refusal for another
// reason; then they are stored. Config.DeniedAfter refusals show that all are wrong: then the runs stop, and none is stored.
type doubt struct {
	over   bool // refusals differ: the requests are to blame
	status int  // of all refusals
	count  int
	held   []held // refusals that are not stored yet
}

// held is a refusal that is held back. Its call is done, but not stored.
type held struct {
	run    *run
	item   *item
	answer Answer
}

var filtered = regexp.MustCompile(`(?i)content.?(filter|management|policy)|moderation`)

// common reports whether a refusal may be about something that all requests have in common.
func (f *fault) common() bool {
	return f.kind == KindRefused && f.code != CodeTooLarge && !filtered.MatchString(f.err.Error())
}

// page reports whether the address may be wrong, or the model.
func (f *fault) page() bool {
	return f.kind == KindRefused && (f.status == http.StatusNotFound || f.status == http.StatusMethodNotAllowed)
}

// doubted reports whether it is not known yet what a replica's refusals mean.
func (d *Dispatcher) doubted(rep *replica) bool {
	return d.config.DeniedAfter > 0 && rep.stats.Answers == 0 && !rep.doubt.over
}

// refused takes over a refusal that is in doubt, and reports whether it did: then it is not to be stored now.
func (d *Dispatcher) refused(r *run, x *item, rep *replica, f fault, answer Answer, now time.Time) bool {
	if !f.common() || !d.doubted(rep) {
		return false
	}
	q := &rep.doubt
	switch {
	case r.err != nil || r.replica != rep:
		d.again(r, x, now) // to be run again, here or elsewhere
		return true
	case q.count > 0 && q.status != f.status:
		q.over = true
		d.release(rep)
		return false
	}
	q.status = f.status
	if q.count++; q.count >= d.config.DeniedAfter {
		d.deny(rep, f)
		d.again(r, x, now)
		return true
	}
	q.held = append(q.held, held{r, x, answer})
	r.held++
	r.flying--
	r.tree.finish(x)
	d.judge(rep)
	d.pump()
	return true
}

// deny stops the runs of a replica that refuses everything. Those that come later find out for themselves.
func (d *Dispatcher) deny(rep *replica, f fault) {
	err := fmt.Errorf("%w: %q refused the first %d and has answered none: %w", ErrDenied, rep.Name, rep.doubt.count, f.err)
	rep.doubt = doubt{}
	for _, r := range slices.Clone(rep.runs) {
		d.stop(r, err)
	}
}

// judge stores what is held back when nothing more is to come that could end the doubt.
func (d *Dispatcher) judge(rep *replica) {
	if len(rep.doubt.held) == 0 {
		return
	}
	for _, r := range rep.runs {
		if r.left > r.held {
			return
		}
	}
	d.release(rep)
}

// release stores what is held back.
func (d *Dispatcher) release(rep *replica) {
	for _, h := range rep.doubt.held {
		h.run.held--
		h.run.flying++
		d.storing++
		go d.keep(h.run, h.item, h.answer)
	}
	rep.doubt.held = nil
}

// recall takes the refusals of a run back that leaves the replica. Its calls are to be sent again.
func (r *replica) recall(x *run) {
	r.doubt.held = slices.DeleteFunc(r.doubt.held, func(h held) bool {
		if h.run != x {
			return false
		}
		x.held--
		h.item.due = time.Time{}
		x.tree.back(h.item)
		x.delayed = append(x.delayed, h.item)
		return true
	})
}
