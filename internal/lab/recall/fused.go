package recall

import (
	"context"

	"github.com/ragpilot/ragpilot/retriever"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// Fused is a searcher over stores that a [retriever.FanIn] fuses with equal weights. All of them must answer.
type Fused struct{ fan *retriever.FanIn }

var _ store.Searcher = Fused{}

// Fuse returns a searcher that asks each store for that many hits. A nil fusion is the one that is shipped.
func Fuse(hits int, fusion retriever.Fusion, stores ...store.Searcher) (Fused, error) {
	cfg := retriever.FanInConfig{Fusion: fusion}
	for _, s := range stores {
		cfg.Sources = append(cfg.Sources, retriever.Source{Retriever: store.NewRetriever(s, store.Query{K: hits}), Required: true})
	}
	fan, err := retriever.NewFanIn(cfg)
	return Fused{fan}, err
}

// Search returns the first q.K of the fused documents. Of q it reads the text and K.
func (f Fused) Search(ctx context.Context, q store.Query) ([]store.Hit, error) {
	docs, err := f.fan.GetRelevantDocuments(ctx, q.Text)
	if err != nil {
		return nil, err
	}
	var hits []store.Hit
	for _, d := range docs[:min(q.K, len(docs))] {
		id, _ := d.Metadata[store.KeyID].(string)
		hits = append(hits, store.Hit{ID: id, Text: d.PageContent, Score: float64(d.Score)})
	}
	return hits, nil
}
