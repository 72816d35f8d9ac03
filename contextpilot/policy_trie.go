package contextpilot

import "slices"

// knowledgeTree is RAGCache++ Alg. 1 as printed: from the root of the trie of sent orders, step to the child of
// the best-ranked remaining block that has one, as long as there is one; the rest follows as retrieved. A node
// is cached as long as it is in the index. O(k²) map lookups at worst.
type knowledgeTree struct{}

func (knowledgeTree) Name() string { return "knowledge-tree" }

func (knowledgeTree) Order(dst []int, q Query) []int {
	at := len(dst)
	dst = identity(dst, len(q.Blocks))
	rest := dst[at:] // placed blocks are rotated to the front, the others keep rank order
	for node := q.From; len(rest) > 0; {
		found := -1
		for i, j := range rest {
			if child, ok := q.Tree.Child(node, q.Blocks[j].Key); ok {
				found, node = i, child
				break
			}
		}
		if found < 0 {
			break
		}
		j := rest[found]
		copy(rest[1:found+1], rest[:found])
		rest[0] = j
		rest = rest[1:]
	}
	return dst
}

// depthFirst returns the order in which requests with these block orders visit their trie depth first, branches
// in order of first appearance: requests that share a prefix run next to each other at every level, so that the
// reuse does not depend on the size of the cache. Groups are the branches at the root.
func depthFirst(orders [][]Key) (schedule []int, groups [][]int) {
	type branch struct {
		kids  map[Key]int
		first []int // children in order of appearance
		ends  []int // requests that end here
	}
	nodes := []branch{{}}
	for i, order := range orders {
		n := 0
		for _, k := range order {
			c, ok := nodes[n].kids[k]
			if !ok {
				c = len(nodes)
				if nodes[n].kids == nil {
					nodes[n].kids = map[Key]int{}
				}
				nodes[n].kids[k] = c
				nodes[n].first = append(nodes[n].first, c)
				nodes = append(nodes, branch{})
			}
			n = c
		}
		nodes[n].ends = append(nodes[n].ends, i)
	}
	var visit func(n int)
	visit = func(n int) {
		schedule = append(schedule, nodes[n].ends...)
		for _, c := range nodes[n].first {
			visit(c)
		}
	}
	if ends := nodes[0].ends; len(ends) > 0 {
		schedule = append(schedule, ends...)
		groups = append(groups, slices.Clone(ends))
	}
	for _, c := range nodes[0].first {
		at := len(schedule)
		visit(c)
		groups = append(groups, slices.Clone(schedule[at:]))
	}
	return schedule, groups
}
