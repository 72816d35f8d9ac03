package sidecar

import (
	"github.com/ragpilot/ragpilot/internal/base/budget"
	"github.com/ragpilot/ragpilot/internal/sidecar/cloudcache"
	"github.com/ragpilot/ragpilot/internal/sidecar/dashboard"
	"github.com/ragpilot/ragpilot/internal/sidecar/savings"
	"github.com/ragpilot/ragpilot/internal/sidecar/settings"
	"github.com/ragpilot/ragpilot/memory"
)

const (
	// scopeBytes is about what a scope of the pilot's index takes before anything is in it.
	scopeBytes = 10 << 10
	// scopeShare is which part of the memory scopes may take. A text in front of the documents that differs from conversation
	// to conversation takes a scope for each.
	scopeShare = 8
	// tenantScopes is a tenant's share of the scopes if there are as many tenants as may be.
	tenantScopes = 4

	// historyBytes is what a block takes that the policy remembers of an earlier request, and historyShare which part of the
	// memory all may take.
	historyBytes = 128
	historyShare = 8

	// keptText bounds one text that the dashboard shows, in bytes, and textShare is which part of the memory all may take.
	keptText  = 64 << 10
	textShare = 8

	// cloudBytes is the most that an entry of a provider's cache takes, with what its prompt carries; cloudShare is which part of
	// the memory all may take.
	cloudBytes = 1 << 10
	cloudShare = 16

	// storeBytes is about what an open store of memories takes, and storeShare which part of the memory all may take. Tenants
	// beyond that have their stores opened when they ask.
	storeBytes = 400 << 10
	storeShare = 8

	// indexShare is which part of the memory the indexes may take that memories are searched with: some 100,000 memories of one
	// scope fit at the default. They have at most half of what the other tables leave, and leastIndexes if those leave less.
	indexShare   = 4
	leastIndexes = 256 << 10

	// sessionBytes is what a session takes that the figures count.
	sessionBytes = 300
)

// bounds are the bounds of the tables that have a fixed share of the memory.
type bounds struct {
	scopes, history, text, cloud, stores int
	// indexes are those of memories; nil if none are kept.
	indexes *memory.Indexes
}

// newBounds shares the memory out: tables that cannot give anything back have a fixed share, all others the rest.
func newBounds(cfg settings.Config) (bounds, *budget.Budget) {
	total := int(cfg.Limits.MemoryBytes)
	b := budget.New(cfg.Limits.MemoryBytes)
	x := bounds{
		scopes:  max(min(tenantScopes*cfg.Limits.Tenants, total/scopeShare/scopeBytes), 64),
		history: total / historyShare / historyBytes,
	}
	b.Reserve("scopes", int64(x.scopes)*scopeBytes)
	b.Reserve("history", int64(x.history)*historyBytes)
	if cfg.KeepTexts {
		x.text = min(keptText, total/textShare/2/dashboard.DefaultRequests)
	}
	b.Reserve("recent", dashboard.MaxBytes(x.text))
	b.Reserve("figures", 2*savings.MaxSessions*sessionBytes)
	if cfg.CloudProvider != "" {
		x.cloud = max(min(cloudcache.DefaultMaxEntries, total/cloudShare/cloudBytes), 1)
		b.Reserve("cloud_cache", int64(x.cloud)*cloudBytes)
	}
	if cfg.Memory.Dir != "" {
		x.stores = max(min(cfg.Limits.Tenants, total/storeShare/storeBytes), 4)
		b.Reserve("memory_stores", int64(x.stores)*storeBytes)
		left := b.Limit()
		for _, t := range b.Tables() {
			left -= t.Bytes
		}
		share := max(min(b.Limit()/indexShare, left/2), leastIndexes)
		x.indexes = memory.NewIndexes(share)
		b.Reserve(indexTable, share)
	}
	return x, b
}

// indexTable is the table of the indexes of memories.
const indexTable = "memory_indexes"
