package batch

// Sizes of subtrees in requests. A subtree is run on one replica, so a cut costs what the requests behind it share with those in front of
// it, once; one that is small costs the queue more for each request, one that is large leaves other replicas idle at the end.
const (
	leastSubtree = 50
	mostSubtree  = 500
)

// subtrees cuts a plan into runs of neighbours of least to most requests, the last maybe of fewer: where neighbours share least, and of
// such places at the last. shared is what each request shares with the earlier one that shares most. It returns where the runs begin.
func subtrees(shared []int, least, most int) []int {
	var begin []int
	for at := 0; at < len(shared); {
		begin = append(begin, at)
		if len(shared)-at <= most {
			break
		}
		cut := at + least
		for i := cut; i <= at+most && i < len(shared); i++ {
			if shared[i] <= shared[cut] {
				cut = i
			}
		}
		at = cut
	}
	return begin
}
