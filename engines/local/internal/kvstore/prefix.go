package kvstore

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/ragpilot/ragpilot/internal/nn/gpu"
)

// Prefix is pages that were not computed here and stand in front of sequences: a context by name. They are in no index, are no one's to
// find, are never given up, and no tier has them: a sequence that names the prefix has them, all others have not.
type Prefix struct {
	pages []*page
	id    [sha256.Size]byte
}

// Placeholder is the token of a prefix's slots. No model has it.
const Placeholder = -1

// Pin makes a prefix of full pages, which are the store's from now on. id must be another for other pages. It returns nil, and changes
// nothing, if there is no room.
func (s *Store) Pin(id [sha256.Size]byte, pages []gpu.Page) *Prefix {
	if !s.Room(len(pages)) {
		return nil
	}
	x := &Prefix{id: id}
	for _, memory := range pages {
		p := &page{refs: 1, clears: s.clears}
		if s.made < s.capacity {
			s.made++
			s.used++
		} else {
			p = s.take()
			s.pool.Free(p.memory)
		}
		p.memory, p.computed = memory, true
		x.pages = append(x.pages, p)
	}
	s.pinned = append(s.pinned, x.pages...)
	return x
}

// Tokens returns how many tokens' places the prefix takes.
func (x *Prefix) Tokens() int {
	if x == nil {
		return 0
	}
	return len(x.pages) * PageTokens
}

// Salt is the salt that events of pages behind the prefix have: they begin behind it, as if there were nothing, under a salt that no other
// prefix has. Without a prefix it is the request's own.
func (x *Prefix) Salt(salt string) string {
	if x == nil {
		return salt
	}
	return "context " + hex.EncodeToString(x.id[:]) + " " + salt
}

// root is what the hash of the first page behind the prefix goes on from.
func (x *Prefix) root(salt string) Hash {
	if x == nil {
		return root(salt)
	}
	own := root(salt)
	data := append([]byte{ofPrefix}, x.id[:]...)
	return sha256.Sum256(append(data, own[:]...))
}

// behind makes the sequence one behind a prefix: it has its pages, which are computed.
func (q *Sequence) behind(x *Prefix) {
	if x == nil {
		return
	}
	q.prefix = len(x.pages)
	for _, p := range x.pages {
		q.store.share(p)
		q.add(p)
	}
}
