package sim

import (
	"slices"
	"time"
)

// begin begins a step: running requests go on, waiting ones are admitted, what they need is loaded.
func (s *Server) begin() {
	s.publish()
	s.arrive()
	s.fetch()
	w := Work{Steps: 1}
	budget := s.options.BatchTokens
	for _, j := range s.loading {
		budget -= j.chunk
	}
	s.batch = s.batch[:0]
	s.goOn(&w, budget)
	budget -= w.PrefillTokens + w.Decodes
	if len(s.loading) > 0 {
		s.goOnLoading(w)
		return
	}
	alone, others := w, len(s.batch)
	s.admitAll(&w, budget)
	if s.options.PrefillFirst && w.PrefillTokens == 0 {
		s.decode(&w, budget)
	}
	m := s.cache.step
	s.cache.step = moved{}
	blockBytes := s.cache.blockTokens * s.options.Tiers.TokenBytes
	load := s.options.Tiers.load(m, blockBytes)
	s.cache.moves.Load += time.Duration(load)
	if s.options.Order.Fill && load > 0 && s.wait(&alone, w, others, load) {
		w = alone
	}
	s.start(w, load, s.options.Tiers.Host.Store.nanos(m.stored, blockBytes))
}

// admitAll adds waiting requests to a step of which budget tokens are left.
func (s *Server) admitAll(w *Work, budget int) {
	for budget > 0 && len(s.running) < s.options.MaxRunning && len(s.queue) > 0 {
		before := len(s.queue)
		s.admitQueued(func(j *job) bool {
			if budget <= 0 || len(s.running) >= s.options.MaxRunning || !s.admit(j, budget) {
				return false
			}
			j.chunk = j.prompt.computed - j.prompt.cached()
			w.prefill(j.prompt.cached(), j.chunk)
			budget -= j.chunk
			s.running, s.batch = append(s.running, j), append(s.batch, j)
			return true
		})
		if len(s.queue) == before || s.options.Order != (Order{}) {
			break
		}
	}
}

// wait takes the requests out of a step with the work w that were admitted behind the first others ones, and has running requests decode
// while what they need is loaded. It returns false, and changes nothing, if none decodes, or if a step of it takes longer than
// loading leaves the engine idle.
func (s *Server) wait(alone *Work, w Work, others int, load float64) bool {
	admitted := slices.Clone(s.batch[others:])
	s.batch = s.batch[:others]
	for _, j := range admitted {
		j.loading = true
	}
	decoding := *alone
	if s.options.PrefillFirst && decoding.PrefillTokens == 0 {
		s.decode(&decoding, s.options.BatchTokens)
	}
	if !s.fits(decoding, w, load) {
		for _, j := range admitted {
			j.loading = false
		}
		s.batch = append(s.batch[:others], admitted...)
		return false
	}
	*alone, s.loading, s.loaded = decoding, admitted, s.now+time.Duration(load)
	return true
}

// fits reports whether a step of decoding fits into the time that the step with is idle for, if it begins now and loading takes so long.
func (s *Server) fits(decoding, with Work, load float64) bool {
	return decoding.Decodes > 0 && load >= float64(s.options.StepCost.Duration(with)+s.options.StepCost.Duration(decoding))
}

// goOnLoading goes on with a step while a batch is being loaded, or with the batch when that is nearly there.
func (s *Server) goOnLoading(w Work) {
	with := w
	for _, j := range s.loading {
		with.prefill(j.prompt.cached(), j.chunk)
	}
	others := len(s.batch)
	if s.options.PrefillFirst && w.PrefillTokens == 0 {
		s.decode(&w, s.options.BatchTokens)
	}
	left := float64(max(0, s.loaded-s.now))
	if !s.fits(w, with, left) {
		for _, j := range s.loading {
			j.loading = false
		}
		if s.options.PrefillFirst {
			s.batch = s.batch[:others]
		}
		s.batch = append(s.batch, s.loading...)
		s.loading, w = nil, with
	}
	s.start(w, left, 0)
}

// start begins a step with the work w, while loading and storing take so many nanoseconds. It waits for loading, unless that is for a
// later step.
func (s *Server) start(w Work, load, store float64) {
	s.work.Add(w)
	d := s.options.StepCost.Duration(w)
	if load > 0 || store > 0 {
		with := s.options.Tiers.slowed(w, float64(d), load, store)
		if len(s.loading) == 0 {
			with = s.options.Tiers.overlapped(with, load)
		}
		s.cache.moves.Stall += time.Duration(with) - d
		d = time.Duration(with)
	}
	s.busy, s.ends = true, s.now+d
}

// publish makes the blocks visible that earlier steps have computed, see [ServerOptions].Publish.
func (s *Server) publish() {
	if s.options.Publish == 0 {
		return
	}
	for _, j := range s.running {
		if j.prompt.named == j.prompt.full() || j.prompt.oversize {
			continue
		}
		done := j.prompt.computed
		if j.loading {
			done = 0
		}
		if s.options.Publish > 1 {
			done, j.before = j.before, done
		}
		s.cache.publish(&j.prompt, done)
	}
}

// arrive moves requests into the queue that have arrived.
func (s *Server) arrive() {
	n := 0
	if len(s.queue) == 0 && len(s.waiting) > 0 { // until now there was nothing to read ahead
		s.fetched, s.rest = max(s.fetched, min(s.now, s.waiting[0].served.Queued)), 0
	}
	for ; n < len(s.waiting) && s.waiting[n].served.Queued <= s.now; n++ {
		j := s.waiting[n]
		j.number, j.queued = s.arrived, true
		s.arrived++
		s.queue = append(s.queue, j)
	}
	s.waiting = slices.Delete(s.waiting, 0, n)
}

// fetch reads from the disk what queued requests need, for as long as has passed.
func (s *Server) fetch() {
	t := &s.options.Tiers
	if !t.Prefetch || len(s.cache.lower) < 2 {
		return
	}
	left := float64(s.now-s.fetched) + s.rest
	s.fetched, s.rest = s.now, 0
	blockTime := t.Disk.Load.nanos(1, s.cache.blockTokens*t.TokenBytes)
	for _, j := range s.queue[:min(len(s.queue), window)] {
		var more bool
		if left, more = s.cache.fetch(&j.prompt, left, blockTime); more {
			s.rest = left // of the next block
			break
		}
	}
}

// goOn adds the work of the running requests to a step: budget tokens at most.
func (s *Server) goOn(w *Work, budget int) {
	for _, j := range s.running {
		left := j.prompt.tokens - j.prompt.computed
		switch {
		case j.loading || s.options.PrefillFirst && left == 0:
		case budget <= 0:
			return
		case left > 0:
			j.chunk = min(left, budget)
			w.prefill(j.prompt.computed, j.chunk)
			s.cache.compute(&j.prompt, j.chunk)
			budget -= j.chunk
			s.batch = append(s.batch, j)
		default:
			budget--
			s.decodeOne(w, j)
		}
	}
}

// decode adds the decoding of running requests to a step without prompts: budget tokens at most.
func (s *Server) decode(w *Work, budget int) {
	for _, j := range s.running {
		if j.loading || j.prompt.computed < j.prompt.tokens {
			continue
		}
		if budget <= 0 {
			return
		}
		budget--
		s.decodeOne(w, j)
	}
}

func (s *Server) decodeOne(w *Work, j *job) {
	j.chunk = 0
	w.decode(j.prompt.tokens + j.output)
	s.batch = append(s.batch, j)
}
