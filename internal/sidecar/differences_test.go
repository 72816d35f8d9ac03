package sidecar_test

import (
	"fmt"
	"strings"

	"github.com/ragpilot/ragpilot/internal/testkit/wiretest"
)

type object = map[string]any

// Reasons, as docs/compatibility.md gives them.
const (
	addedEndpoint = "the endpoint is there in every mode"
	wrongType     = "answers pass whatever their type is"
	badJSON       = "bad JSON under /v1 is 400 everywhere"
	notAnObject   = "a body without a list of messages passes untouched"
	onlyOrder     = "a set without order"
	onlyAsCame    = "query, headers and body of other endpoints pass as they are: no IDs, no temperature"
	tellsResult   = "the header says what was done"
	tellsID       = "the header says under which ID the engine knows the request"
	systemOrder   = "documents in the system text are ordered on the first turn, and stay"
	textBetween   = "text between documents stays"
	oldTurns      = "what was forwarded for old messages stays; only the new result is planned"
	marksStay     = "random IDs of external content stay; only comparisons leave them out"
	offIsOff      = "a request that is switched off passes untouched"
	people        = "a text for people"
	cacheMarks    = "short tool results use up no breakpoint"
	cacheCounts   = "entries are counted by content, and reads as hits"
	cacheAccount  = "an account of tokens and money is added"
)

// What the engine answers where the recorded one was not asked.
const (
	notAsked     = 418.0
	notAskedText = "wiretest: the recorded engine was not asked\n"
)

// differences are all points where we answer or forward something else than was recorded.
var differences = []wiretest.Rule{
	{Example: "stateless/method-and-path-errors", Endpoint: "POST /deduplicate", At: "status", Want: 200.0, Why: addedEndpoint},
	{Example: "stateless/method-and-path-errors", Endpoint: "POST /deduplicate", At: "body/detail", Want: wiretest.Absent, Why: addedEndpoint},
	{Example: "stateless/method-and-path-errors", Endpoint: "POST /deduplicate", At: "body/*", Check: anything, Why: addedEndpoint},

	{Example: "live/completions-proxy", Steps: []int{5}, At: "status", Want: 200.0, Why: wrongType},
	{Example: "live/completions-proxy", Steps: []int{5}, At: "header/x-contextpilot-result", Check: anything, Why: tellsID},
	{Example: "live/completions-proxy", Steps: []int{5}, At: "body/detail", Want: wiretest.Absent, Why: wrongType},
	{Example: "live/completions-proxy", Steps: []int{5}, At: "body/__text__", Want: "not json", Why: wrongType},
	{Example: "live/completions-proxy", Steps: []int{6}, At: "status", Want: 400.0, Why: badJSON},
	{Example: "live/completions-proxy", Steps: []int{6}, At: "body/detail", Want: "Invalid JSON body", Why: badJSON},
	{Example: "live/completions-proxy", Endpoint: "GET /requests", At: "body/request_ids", Kind: wiretest.AnyOrder, Why: onlyOrder},

	{Example: "live/generic-v1", Steps: []int{1}, At: "upstream/path", Want: "/v1/models?limit=1", Why: onlyAsCame},
	{Example: "live/generic-v1", At: "upstream/headers/authorization", Want: "Bearer k", Why: onlyAsCame},
	{Example: "live/generic-v1", At: "upstream/json/rid", Want: wiretest.Absent, Why: onlyAsCame},
	{Example: "live/generic-v1", Steps: []int{2}, At: "upstream/json/request_id", Want: wiretest.Absent, Why: onlyAsCame},
	{Example: "live/generic-v1", At: "upstream/json/temperature", Want: wiretest.Absent, Why: onlyAsCame, Steps: []int{2}},
	{Endpoint: "POST /v1/responses", At: "upstream/json/rid", Want: wiretest.Absent, Why: onlyAsCame},
	{Endpoint: "POST /v1/responses", At: "upstream/json/request_id", Want: wiretest.Absent, Why: onlyAsCame},
	{Endpoint: "POST /v1/responses", At: "upstream/json/temperature", Want: wiretest.Absent, Why: onlyAsCame},
	{Endpoint: "POST /v1/responses", At: "header/x-contextpilot-result", Check: saved("dedup", "blocks_deduped", 4), Why: tellsResult},

	{Example: "intercept/*", At: "header/x-contextpilot-result/request_id", Check: forwardedID, Why: tellsID},
	{
		Example: "intercept/system-docs-never-reordered",
		Steps:   []int{1},
		At:      "header/x-contextpilot-result",
		Check:   saved("sources", "system", 1),
		Why:     systemOrder,
	},
	{
		Example: "intercept/system-docs-never-reordered", Steps: []int{1}, At: "upstream/json/messages/0/content", Why: systemOrder,
		Want: "x <documents>\n<document>JWT token validation and rotation policy</document>\n<document>OAuth2 token refresh " +
			"flow</document>\n<document>Redis cache invalidation with TTL</document>\n</documents> y",
	},
	{
		Example: "intercept/custom-tag", Steps: []int{1}, At: "upstream/json/messages/2/content", Why: textBetween,
		Want: "<item>JWT token validation and rotation policy</item> mid <item>Database connection pooling and " +
			"sharding</item>\n<item>OAuth2 token refresh flow</item>",
	},
	{
		Example: "intercept/external-marker-ids-stripped", Steps: []int{0}, At: "upstream/json/messages/0/content", Why: marksStay,
		Want: `<<<EXTERNAL_UNTRUSTED_CONTENT id="ab12">>> t <<<END_EXTERNAL_UNTRUSTED_CONTENT id="ab12">>>`,
	},
	{
		Example: "intercept/external-marker-ids-stripped",
		Steps:   []int{1},
		At:      "upstream/json/messages/0/content",
		Want:    `<<<EXTERNAL_UNTRUSTED_CONTENT id="ab12">>>`,
		Why:     offIsOff,
	},

	{
		Example: "intercept/turns-dedup-second-tool-result",
		Steps:   []int{2},
		At:      "upstream/json/messages/3/content",
		Check:   asForwarded,
		Why:     oldTurns,
	},
	{
		Example: "intercept/turns-dedup-second-tool-result",
		Steps:   []int{2},
		At:      "upstream/json/messages/6/content",
		Check:   asForwarded,
		Why:     oldTurns,
	},
	oldTurn("header/x-contextpilot-result/chars_before_slim", 137.0),
	oldTurn("header/x-contextpilot-result/chars_after_slim", 101.0),
	oldTurn("header/x-contextpilot-result/chars_saved", 36.0),
	oldTurn("header/x-contextpilot-result/documents_[ds][el]*", 2.0),
	oldTurn("header/x-contextpilot-result/sources/tool_results", 1.0),
	{
		Example: "intercept/turns-dedup-second-tool-result", Steps: []int{2}, At: "header/x-contextpilot-result/reorder_details", Why: oldTurns,
		Want: []any{object{"source": "tool_result[9]", "count": 1.0, "deduped": 2.0}},
	},

	{Example: "intercept/upstream-errors", Steps: []int{1}, At: "status", Want: 500.0, Why: wrongType},
	{Example: "intercept/upstream-errors", Steps: []int{1}, At: "body/detail", Want: wiretest.Absent, Why: wrongType},
	{Example: "intercept/upstream-errors", Steps: []int{1}, At: "body/__text__", Want: "boom", Why: wrongType},
	{Example: "intercept/upstream-errors", Steps: []int{3, 5}, At: "status", Want: notAsked, Why: notAnObject},
	{Example: "intercept/upstream-errors", Steps: []int{3, 5}, At: "upstream", Check: arrived("POST"), Why: notAnObject},
	{Example: "intercept/upstream-errors", Steps: []int{3, 5}, At: "body/__text__", Want: notAskedText, Why: notAnObject},
	{Example: "live/upstream-down", At: "body/detail", Check: says("backend error: "), Why: people},

	{Example: "cloud/*", At: "upstream/json/messages/0/content/4/cache_control", Check: anything, Why: cacheMarks},
	{Example: "cloud/*", Endpoint: "GET /cloud/stats", At: "body/account", Check: accounted, Why: cacheAccount},
	{Example: "cloud/anthropic-extended", At: "*/default_ttl", Want: "1h", Why: cacheCounts},
	{Example: "cloud/anthropic-extended", At: "header/*/ttl_stats/default_ttl", Want: "1h", Why: cacheCounts},
	{Example: "cloud/openai", At: "*/default_ttl", Want: "1h", Why: cacheCounts},
	{Example: "cloud/openai", At: "header/*/ttl_stats/default_ttl", Want: "1h", Why: cacheCounts},
	{Example: "cloud/openai-extended", At: "*/default_ttl", Want: "24h", Why: cacheCounts},
	{Example: "cloud/openai-extended", At: "header/*/ttl_stats/default_ttl", Want: "24h", Why: cacheCounts},
	{Example: "cloud/openai*", Steps: []int{1}, At: "header/*/ttl_stats/total_hits", Want: 1.0, Why: cacheCounts},
	{Example: "cloud/openai*", Steps: []int{2}, At: "header/*/ttl_stats/total_hits", Want: 2.0, Why: cacheCounts},
	{Example: "cloud/openai*", Steps: []int{3}, At: "body/total_hits", Want: 2.0, Why: cacheCounts},
	{Example: "cloud/openai*", Steps: []int{2}, At: "header/*/ttl_stats/active_entries", Want: 1.0, Why: cacheCounts},
	{Example: "cloud/openai*", Steps: []int{2}, At: "header/*/ttl_stats/total_entries", Want: 1.0, Why: cacheCounts},
	{Example: "cloud/openai*", Steps: []int{2}, At: "header/*/ttl_stats/total_additions", Want: 1.0, Why: cacheCounts},
	{Example: "cloud/openai*", Steps: []int{2}, At: "header/*/ttl_stats/total_cached_tokens", Want: 40.0, Why: cacheCounts},
	{Example: "cloud/openai*", Steps: []int{3}, At: "body/*_entries", Want: 1.0, Why: cacheCounts},
	{Example: "cloud/openai*", Steps: []int{3}, At: "body/total_additions", Want: 1.0, Why: cacheCounts},
	{Example: "cloud/openai*", Steps: []int{3}, At: "body/total_cached_tokens", Want: 40.0, Why: cacheCounts},
	{Example: "cloud/[am]*", At: "header/*/ttl_stats/total_misses", Want: 1.0, Why: cacheCounts},
	{Example: "cloud/[am]*", Steps: []int{3}, At: "body/total_misses", Want: 1.0, Why: cacheCounts},
	{Example: "cloud/[am]*", Steps: []int{2}, At: "header/*/ttl_stats/total_hits", Want: 1.0, Why: cacheCounts},
	{Example: "cloud/[am]*", Steps: []int{3}, At: "body/total_hits", Want: 1.0, Why: cacheCounts},
	{Example: "cloud/[am]*", Steps: []int{2}, At: "header/*/ttl_stats/hit_rate_pct", Want: 50.0, Why: cacheCounts},
	{Example: "cloud/[am]*", Steps: []int{3}, At: "body/hit_rate_pct", Want: 50.0, Why: cacheCounts},
	{Example: "cloud/openai*", Steps: []int{1, 2}, At: "header/*/ttl_stats/hit_rate_pct", Want: 100.0, Why: cacheCounts},
	{Example: "cloud/openai*", Steps: []int{3}, At: "body/hit_rate_pct", Want: 100.0, Why: cacheCounts},
}

func anything(wiretest.Exchange, any) error { return nil }

// accounted checks an account's members.
func accounted(_ wiretest.Exchange, got any) error {
	o, _ := got.(object)
	for _, member := range []string{"requests", "plain_tokens", "read_tokens", "written_tokens", "output_tokens"} {
		if _, ok := o[member].(float64); !ok {
			return fmt.Errorf("%s of %v", member, got)
		}
	}
	return nil
}

// arrived checks that the engine got the client's bytes.
func arrived(method string) func(wiretest.Exchange, any) error {
	return func(x wiretest.Exchange, _ any) error {
		if len(x.Upstream) != 1 {
			return fmt.Errorf("the engine got %d requests", len(x.Upstream))
		}
		got, _ := x.Upstream[0].(object)
		if got["method"] != method || x.Request != nil && fmt.Sprint(got["json"]) != fmt.Sprint(x.Request) {
			return fmt.Errorf("the engine got %v, want %v", got, x.Request)
		}
		return nil
	}
}

// saved checks one figure of the result header.
func saved(group, member string, want float64) func(wiretest.Exchange, any) error {
	return func(_ wiretest.Exchange, got any) error {
		o, _ := got.(object)
		g, _ := o[group].(object)
		if g[member] != want {
			return fmt.Errorf("%s of %s is %v, want %v", member, group, g[member], want)
		}
		return nil
	}
}

// forwardedID checks that client and engine get the same ID.
func forwardedID(x wiretest.Exchange, got any) error {
	sent, _ := x.Upstream[0].(object)
	body, _ := sent["json"].(object)
	if body["rid"] != got {
		return fmt.Errorf("the client got %v, the engine %v", got, body["rid"])
	}
	return nil
}

// asForwarded checks that an old message is what was forwarded for it: all documents, each once in the prompt.
func asForwarded(_ wiretest.Exchange, got any) error {
	if text, _ := got.(string); !strings.HasPrefix(text, "<documents>") || strings.Contains(text, "identical to a previous") {
		return fmt.Errorf("it became %v", got)
	}
	return nil
}

func says(what string) func(wiretest.Exchange, any) error {
	return func(_ wiretest.Exchange, got any) error {
		if text, _ := got.(string); !strings.Contains(strings.ToLower(text), what) {
			return fmt.Errorf("%q does not say %q", got, what)
		}
		return nil
	}
}

// oldTurn is a difference in the turn whose tool result repeats an earlier one.
func oldTurn(at string, want any) wiretest.Rule {
	return wiretest.Rule{Example: "intercept/turns-dedup-second-tool-result", Steps: []int{2}, At: at, Want: want, Why: oldTurns}
}
