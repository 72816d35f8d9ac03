package doctor

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// observer is a transport that notes how far the server's clock is from ours.
type observer struct {
	next http.RoundTripper
	now  func() time.Time

	mu   sync.Mutex
	skew time.Duration // guarded by mu; positive: the server is ahead
	wide time.Duration // how far off skew may be
	any  bool
}

// RoundTrip passes a request on. The header Date has whole seconds, cut off, and was written while the request
// was under way; of all answers the one that was shortest under way counts.
func (o *observer) RoundTrip(r *http.Request) (*http.Response, error) {
	began := o.now()
	response, err := o.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	ended := o.now()
	date, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return response, nil
	}
	half := ended.Sub(began) / 2
	o.mu.Lock()
	defer o.mu.Unlock()
	if wide := half + time.Second/2; !o.any || wide < o.wide {
		o.skew, o.wide, o.any = date.Add(time.Second/2).Sub(began.Add(half)), wide, true
	}
	return response, nil
}

// clock returns the difference, and whether there is one.
func (o *observer) clock() (skew, wide time.Duration, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.skew, o.wide, o.any
}

// mostSkew is how far clocks may be from each other: logs, traces and figures of both are compared by eye.
const mostSkew = 5 * time.Second

// clock compares the server's clock with ours.
func (x *exam) clock() {
	const name = "clock"
	skew, wide, ok := x.seen.clock()
	ahead := x.facts.started.Sub(x.cfg.Now())
	switch {
	case ok && max(skew, -skew)-wide > mostSkew:
		x.add(name, Warning, fmt.Sprintf("the server is %s off, by its header Date", signed(skew)),
			"set both clocks by NTP: logs, traces and event times are compared")
	case !x.facts.started.IsZero() && ahead > mostSkew:
		x.add(name, Warning, fmt.Sprintf("the server was started %s from now, by its metrics", ahead.Round(time.Second)),
			"set both clocks by NTP: logs, traces and event times are compared")
	case ok:
		x.add(name, OK, fmt.Sprintf("within %s of ours", max(wide, time.Second).Round(time.Second)+max(skew, -skew).Truncate(time.Second)), "")
	default:
		x.add(name, NotKnown, "answers have no header Date", "")
	}
}

func signed(d time.Duration) string {
	if d > 0 {
		return "+" + d.Round(time.Second).String()
	}
	return d.Round(time.Second).String()
}
