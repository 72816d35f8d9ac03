package doctor

import (
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
