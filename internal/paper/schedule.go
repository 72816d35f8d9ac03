package paper

import (
	"cmp"
	"slices"
)

// Schedule is ContextPilot's Alg. 5: contexts are grouped by the first element of their search path (empty paths
// form one group), longer paths come first inside a group (then by path, then by index), and larger groups
// first (then by the index of their first member). order is the concatenation of the groups.
func Schedule(paths [][]int) (order []int, groups [][]int) {
	byRoot := map[int]int{} // first path element → index into groups
	for i, p := range paths {
		key := -1
		if len(p) > 0 {
			key = p[0]
		}
		g, ok := byRoot[key]
		if !ok {
			g = len(groups)
			byRoot[key] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	for _, g := range groups {
		slices.SortFunc(g, func(a, b int) int {
			return cmp.Or(cmp.Compare(len(paths[b]), len(paths[a])), slices.Compare(paths[a], paths[b]), cmp.Compare(a, b))
		})
	}
	slices.SortFunc(groups, func(a, b []int) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a[0], b[0]))
	})
	order = make([]int, 0, len(paths))
	for _, g := range groups {
		order = append(order, g...)
	}
	return order, groups
}
