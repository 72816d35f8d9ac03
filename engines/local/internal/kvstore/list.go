package kvstore

// list is a doubly linked list of pages. A page is in one list at most.
type list struct {
	first, last *page
	len         int
}

func (l *list) add(p *page) {
	p.prev, p.next = l.last, nil
	if l.last != nil {
		l.last.next = p
	} else {
		l.first = p
	}
	l.last = p
	l.len++
}

func (l *list) remove(p *page) {
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		l.first = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		l.last = p.prev
	}
	p.prev, p.next = nil, nil
	l.len--
}
