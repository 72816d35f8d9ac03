package memorytrace

import (
	"strconv"

	"github.com/ragpilot/ragpilot/internal/lab/trace"
)

// users tells whose a block is: two blocks that a request has together have one owner.
type users map[string]string // block → a block of the same owner; an owner's first block → itself

func newUsers(trc []trace.Request) users {
	u := users{}
	for _, q := range trc {
		for _, id := range q.Docs {
			if u[id] == "" {
				u[id] = id
			}
			u[u.first(id)] = u.first(q.Docs[0])
		}
	}
	return u
}

// first returns the block that stands for the owner.
func (u users) first(id string) string {
	for u[id] != id {
		u[id] = u[u[id]]
		id = u[id]
	}
	return id
}

// names numbers the owners by their first request.
func (u users) names(trc []trace.Request) map[string]string {
	names := map[string]string{}
	for _, q := range trc {
		if len(q.Docs) == 0 {
			continue
		}
		if first := u.first(q.Docs[0]); names[first] == "" {
			names[first] = "user-" + strconv.Itoa(len(names)+1)
		}
	}
	return names
}
