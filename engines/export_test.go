package engines

import "time"

// SetNow sets the router's clock; before it is used.
func (r *Router) SetNow(now func() time.Time) { r.now = now }
