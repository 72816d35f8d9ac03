package tree

// owner is a name that requests share: a conversation's requests hold it once.
type owner struct {
	name string
	uses int32 // requests
}

// useOwner returns the number of a name, for one more request; 0 is the empty name.
func (t *Tree) useOwner(name string) int32 {
	if name == "" {
		return 0
	}
	h := t.hash(name)
	i, at := t.byName.first(h)
	for i != 0 && t.owners.at(i).name != name {
		i, at = t.byName.next(h, at)
	}
	if i == 0 {
		i = t.owners.take()
		t.owners.at(i).name = name
		t.byName.add(h, i)
	}
	t.owners.at(i).uses++
	return i
}

func (t *Tree) releaseOwner(i int32) {
	if i == 0 {
		return
	}
	x := t.owners.at(i)
	if x.uses--; x.uses == 0 {
		t.byName.remove(t.hash(x.name), i)
		t.owners.give(i)
	}
}
