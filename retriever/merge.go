package retriever

import (
	"github.com/tmc/langchaingo/schema"

	"github.com/ragpilot/ragpilot/contextpilot"
	"github.com/ragpilot/ragpilot/retriever/passage"
)

// merge makes blocks of passages, and says for each which of the found documents it stands for, the one that names it
// first.
func (s *settings) merge(blocks []contextpilot.Block, found []schema.Document) ([]contextpilot.Block, [][]int) {
	chunks := make([]passage.Chunk, len(found))
	for i, d := range found {
		id, start := s.place(d)
		chunks[i] = passage.Chunk{Doc: id.Doc, Index: id.Chunk, Start: start, Text: d.PageContent}
		if s.passages.Form == passage.Join && id.Doc != "" { // no passage may mix versions
			chunks[i].Doc = passage.ID{Doc: id.Doc, Version: id.Version, Chunk: -1}.String()
		}
	}
	passages := passage.Make(chunks, *s.passages)
	out := make([]contextpilot.Block, len(passages))
	of := make([][]int, len(passages))
	for i, p := range passages {
		out[i] = blocks[p.Chunks[0]]
		out[i].Text = p.Text
		for _, c := range p.Chunks {
			out[i].Score = max(out[i].Score, blocks[c].Score)
		}
		of[i] = p.Chunks
	}
	return out, of
}

// single is what merge returns if nothing is merged.
func single(n int) [][]int {
	all, of := make([]int, n), make([][]int, n)
	for i := range n {
		all[i] = i
		of[i] = all[i : i+1 : i+1]
	}
	return of
}
