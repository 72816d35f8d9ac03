package recorded

import "container/list"

// ordered is a map that knows which key was put longest ago.
type ordered[V any] struct {
	at    map[string]*list.Element
	queue *list.List // of pair[V], put longest ago first
	peak  int        // the most that at has held since it was made
}

type pair[V any] struct {
	key   string
	value V
}

func newOrdered[V any]() ordered[V] {
	return ordered[V]{at: map[string]*list.Element{}, queue: list.New()}
}

func (o *ordered[V]) len() int { return len(o.at) }

func (o *ordered[V]) get(key string) (value V, ok bool) {
	e, ok := o.at[key]
	if !ok {
		return value, false
	}
	return e.Value.(pair[V]).value, true
}

// put sets the value of a key, which is the youngest then.
func (o *ordered[V]) put(key string, value V) {
	if e, ok := o.at[key]; ok {
		e.Value = pair[V]{key, value}
		o.queue.MoveToBack(e)
		return
	}
	o.at[key] = o.queue.PushBack(pair[V]{key, value})
	o.peak = max(o.peak, len(o.at))
}

func (o *ordered[V]) remove(key string) {
	if e, ok := o.at[key]; ok {
		o.queue.Remove(e)
		delete(o.at, key)
		o.shrink()
	}
}

// update changes all values; the order stays.
func (o *ordered[V]) update(change func(V) V) {
	for e := o.queue.Front(); e != nil; e = e.Next() {
		p := e.Value.(pair[V])
		p.value = change(p.value)
		e.Value = p
	}
}

// oldest returns the key that was put longest ago; there must be one.
func (o *ordered[V]) oldest() string { return o.queue.Front().Value.(pair[V]).key }

// keys returns all keys, oldest first.
func (o *ordered[V]) keys() []string {
	out := make([]string, 0, o.len())
	for e := o.queue.Front(); e != nil; e = e.Next() {
		out = append(out, e.Value.(pair[V]).key)
	}
	return out
}
