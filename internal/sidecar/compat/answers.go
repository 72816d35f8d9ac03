package compat

import (
	"encoding/json"

	"github.com/ragpilot/ragpilot/internal/sidecar/compat/recorded"
)

// The answers' members, in the reference's order and words.

type rootAnswer struct {
	Service          string  `json:"service"`
	Status           string  `json:"status"`
	Mode             string  `json:"mode"`
	IndexInitialized bool    `json:"index_initialized"`
	Timestamp        float64 `json:"timestamp"`
}

type healthStateless struct {
	Status          string  `json:"status"`
	Mode            string  `json:"mode"`
	EvictionEnabled bool    `json:"eviction_enabled"`
	Message         string  `json:"message"`
	Timestamp       float64 `json:"timestamp"`
}

type healthNotReady struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type healthLive struct {
	Status          string     `json:"status"`
	Mode            string     `json:"mode"`
	EvictionEnabled bool       `json:"eviction_enabled"`
	MaxTokens       *int       `json:"max_tokens"`
	CurrentTokens   int        `json:"current_tokens"`
	UtilizationPct  float64    `json:"utilization_pct"`
	IndexStats      indexStats `json:"index_stats"`
	Timestamp       float64    `json:"timestamp"`
}

type statsAnswer struct {
	Status     string     `json:"status"`
	IndexStats indexStats `json:"index_stats"`
	Timestamp  float64    `json:"timestamp"`
}

type indexStats struct {
	NumNodes        int     `json:"num_nodes"`
	ActiveNodes     int     `json:"active_nodes"`
	TotalTokens     int     `json:"total_tokens"`
	NumRequests     int     `json:"num_requests"`
	TotalSearches   int     `json:"total_searches"`
	TotalInsertions int     `json:"total_insertions"`
	TotalRemovals   int     `json:"total_removals"`
	AvgSearchTimeUs float64 `json:"avg_search_time_us"`
}

func newIndexStats(s recorded.Stats) indexStats {
	out := indexStats{
		NumNodes: s.Nodes, ActiveNodes: s.Nodes, TotalTokens: s.Tokens, NumRequests: s.Requests,
		TotalSearches: s.Searches, TotalInsertions: s.Insertions, TotalRemovals: s.Removals,
	}
	if s.Searches > 0 {
		out.AvgSearchTimeUs = s.SearchTime.Seconds() * 1e6 / float64(s.Searches)
	}
	return out
}

type requestsAnswer struct {
	Status      string   `json:"status"`
	NumRequests int      `json:"num_requests"`
	RequestIDs  []string `json:"request_ids"`
}

type ttftAnswer struct {
	TTFTMs          []float64 `json:"ttft_ms"`
	Count           int       `json:"count"`
	AvgMs           float64   `json:"avg_ms"`
	TotalCharsSaved int       `json:"total_chars_saved"`
}

type statusAnswer struct {
	Status string `json:"status"`
}

type resetAnswer struct {
	Status              string `json:"status"`
	Message             string `json:"message"`
	ConversationTracker string `json:"conversation_tracker"`
}

type evictAnswer struct {
	Status               string   `json:"status"`
	ConversationsCleared int      `json:"conversations_cleared"`
	NormalizedRequestIDs []string `json:"normalized_request_ids"`
	RemovedCount         int      `json:"removed_count"`
	EvictedNodeIDs       []int    `json:"evicted_node_ids"`
	EvictedRequestIDs    []string `json:"evicted_request_ids"`
	NotFound             []string `json:"not_found"`
	NodesRemaining       int      `json:"nodes_remaining"`
	RequestsRemaining    int      `json:"requests_remaining"`
	ShrunkRequestIDs     []string `json:"shrunk_request_ids,omitempty"` // not of the reference, which has no prefixes
}

type searchAnswer struct {
	Status       string `json:"status"`
	SearchPath   []int  `json:"search_path"`
	NodeID       int    `json:"node_id"`
	PrefixLength int    `json:"prefix_length"` // the overlap: the reference's name for it
	HasPrefix    bool   `json:"has_prefix"`
	Overlap      int    `json:"overlap"`
}

type insertAnswer struct {
	Status     string `json:"status"`
	NodeID     int    `json:"node_id"`
	SearchPath []int  `json:"search_path"`
	RequestID  string `json:"request_id"`
}

// contextsJSON are contexts, each a rendered list.
type contextsJSON []json.RawMessage

// groupJSON is [score, [context, …]].
type groupJSON [2]any

// reorderHead begins all answers to /reorder.
type reorderHead struct {
	Status      string `json:"status"`
	Message     string `json:"message"`
	Mode        string `json:"mode"`
	InputType   string `json:"input_type"`
	NumContexts int    `json:"num_contexts"`
}

type reorderStateless struct {
	reorderHead
	NumGroups         int            `json:"num_groups"`
	ReorderedContexts contextsJSON   `json:"reordered_contexts"`
	OriginalIndices   []int          `json:"original_indices"`
	ScheduledContexts contextsJSON   `json:"scheduled_contexts"` // the reference's old name for the same
	Groups            []groupJSON    `json:"groups"`
	Stats             statelessStats `json:"stats"`
}

type statelessStats struct {
	TotalNodes  int `json:"total_nodes"`
	LeafNodes   int `json:"leaf_nodes"`
	NumContexts int `json:"num_contexts"`
	NumGroups   int `json:"num_groups"`
}

type reorderInitial struct {
	reorderHead
	MatchedCount      int            `json:"matched_count"`
	InsertedCount     int            `json:"inserted_count"`
	RequestIDMapping  map[string]int `json:"request_id_mapping"`
	RequestIDs        []string       `json:"request_ids"`
	ReorderedContexts contextsJSON   `json:"reordered_contexts"`
	OriginalIndices   []int          `json:"original_indices"`
	Stats             indexStats     `json:"stats"`
	Deduplication     *dedupJSON     `json:"deduplication,omitempty"`
}

type reorderIncremental struct {
	reorderHead
	MatchedCount      int          `json:"matched_count"`
	MergedCount       int          `json:"merged_count"`
	RequestIDs        []string     `json:"request_ids"`
	ReorderedContexts contextsJSON `json:"reordered_contexts"`
	ReorderedByInput  contextsJSON `json:"reordered_by_input,omitzero"` // ours; nil: not asked for
	OriginalIndices   []int        `json:"original_indices"`
	Groups            []groupJSON  `json:"groups"`
	Stats             indexStats   `json:"stats"`
	Deduplication     *dedupJSON   `json:"deduplication,omitempty"`
}

type dedupJSON struct {
	Enabled               bool           `json:"enabled"`
	Results               []dedupContext `json:"results"`
	TotalDocsDeduplicated int            `json:"total_docs_deduplicated"`
	TotalBlocksDeduped    int            `json:"total_blocks_deduped"`
}

// dedupDocs is what de-duplication found in one context.
type dedupDocs struct {
	OriginalDocs     json.RawMessage `json:"original_docs"`
	DeduplicatedDocs json.RawMessage `json:"deduplicated_docs"` // new_docs
	OverlappingDocs  json.RawMessage `json:"overlapping_docs"`
	NewDocs          json.RawMessage `json:"new_docs"`
	ReferenceHints   []string        `json:"reference_hints"`
}

type dedupContext struct {
	RequestID string `json:"request_id"`
	dedupDocs
	BlocksDeduped   int `json:"blocks_deduped"`
	BlocksTotal     int `json:"blocks_total"`
	BlockCharsSaved int `json:"block_chars_saved"`
}

type dedupTurn struct {
	RequestID       string  `json:"request_id"`
	ParentRequestID *string `json:"parent_request_id"`
	dedupDocs
	IsNewConversation bool `json:"is_new_conversation"`
}

type dedupAnswer struct {
	Status     string       `json:"status"`
	Message    string       `json:"message"`
	RequestIDs []string     `json:"request_ids"`
	Results    []dedupTurn  `json:"results"`
	Summary    dedupSummary `json:"summary"`
}

type dedupSummary struct {
	TotalContexts          int `json:"total_contexts"`
	NewConversations       int `json:"new_conversations"`
	ContinuedConversations int `json:"continued_conversations"`
	TotalDocsDeduplicated  int `json:"total_docs_deduplicated"`
}
