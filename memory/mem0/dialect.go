package mem0

import "fmt"

// Dialect says which of Mem0's APIs a server has.
type Dialect uint8

const (
	// SelfHosted is Mem0's own server: /memories, /search.
	SelfHosted Dialect = iota
	// Hosted is the hosted service as its client of 2.x calls it: /v3/memories/...
	Hosted
	// HostedV2 is the hosted service as its client of 1.x calls it: /v1/memories/, /v2/memories/search/.
	HostedV2
)

// String returns the dialect's name.
func (d Dialect) String() string {
	switch d {
	case SelfHosted:
		return "self-hosted"
	case Hosted:
		return "hosted"
	case HostedV2:
		return "hosted-v2"
	}
	return fmt.Sprintf("Dialect(%d)", uint8(d))
}

// routes are the paths of a dialect; %s is a memory's ID.
type routes struct {
	add, list, search, one, history, all string
	scheme                               string // of the Authorization header
	listByGet                            bool   // the IDs stand in the query, else in a filter
}

func (d Dialect) routes() (routes, bool) {
	switch d {
	case SelfHosted:
		return routes{"/memories", "/memories", "/search", "/memories/%s", "/memories/%s/history", "/memories", "Bearer", true}, true
	case Hosted:
		return routes{
			"/v3/memories/add/", "/v3/memories/", "/v3/memories/search/", "/v1/memories/%s/", "/v1/memories/%s/history/",
			"/v1/memories/", "Token", false,
		}, true
	case HostedV2:
		return routes{
			"/v1/memories/", "/v2/memories/", "/v2/memories/search/", "/v1/memories/%s/", "/v1/memories/%s/history/", "/v1/memories/",
			"Token", false,
		}, true
	}
	return routes{}, false
}
