package local

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/ragpilot/ragpilot/engines/local/internal/compress"
	"github.com/ragpilot/ragpilot/engines/local/internal/contextfile"
	"github.com/ragpilot/ragpilot/engines/local/internal/llama"
)

// corpusPart is a run of a corpus's tokens that are computed together.
type corpusPart struct {
	tokens  []int32
	behind  int // tokens of the head in front
	sources []contextfile.Source
	slots   int
	whole   bool // it is the head: all of it is kept
	key     string
	cost    float64
}

// corpus are the tokens of the documents, with an empty line behind each.
func (x *compressor) corpus() []*corpusPart {
	documents := make([]*corpusPart, 0, len(x.Documents))
	for _, d := range x.Documents {
		tokens := x.file.Tokenizer.Encode(d.Text+"\n\n", false)
		documents = append(documents, &corpusPart{tokens: tokens, sources: []contextfile.Source{source(d.Name, tokens)}})
	}
	return documents
}

func source(name string, tokens []int32) contextfile.Source {
	return contextfile.Source{Name: name, Hash: hash(bytesOf(tokens)), Tokens: len(tokens)}
}

// cut makes the parts of the corpus.
//
// All together: one part, or, above a window, the first whole pages of the opening as a head and windows behind it, each at the positions
// behind the head. The last tokens that fill no page are not compressed: requests begin with them. By document: the head, and each document
// as a part behind it; the first has the rest of the opening in front. Documents longer than a window are cut, and those shorter than a
// page go with the next.
func (x *compressor) cut() ([]*corpusPart, error) {
	documents := x.corpus()
	for _, d := range documents {
		x.header.Tokens += len(d.tokens)
	}
	x.header.Tokens += len(x.opening)
	window, err := x.window()
	if err != nil {
		return nil, err
	}
	var parts []*corpusPart
	if x.ByDocument {
		parts = x.byDocument(documents, window)
	} else {
		parts = x.joint(documents, window)
	}
	if len(parts) == 0 || len(parts) == 1 && parts[0].whole {
		return nil, fmt.Errorf("Compression.Documents: %d tokens with the task are too few", x.header.Tokens)
	}
	x.header.Profile = len(parts) == 1 && x.header.Notes != "none" // notes see one part
	for _, p := range parts {
		if p.slots = len(p.tokens); !p.whole {
			if p.slots, err = x.slots(len(p.tokens)); err != nil {
				return nil, err
			}
		}
		p.key = x.key(p)
	}
	return parts, nil
}

// window is how many tokens are computed together: what is read behind them must have room, too.
func (x *compressor) window() (int, error) {
	behind := len(x.texts.Prompt) + len(x.texts.Notes)
	if x.header.Notes == "model" {
		behind += x.MaxNotes
	}
	if x.Scorer == "kvzip" {
		behind = max(behind, min(x.Window, compress.RepeatedTokens)+len(x.texts.Repeat)+llama.PageTokens)
	}
	window := min(x.Window, x.file.Context-behind)
	if window < len(x.opening)+llama.PageTokens {
		return 0, fmt.Errorf("Compression.Window %d: the model has room for %d tokens, %d of them behind the documents and %d in front",
			x.Window, x.file.Context, behind, len(x.opening))
	}
	return window / llama.PageTokens * llama.PageTokens, nil
}

func (x *compressor) head() *corpusPart {
	n := len(x.opening) / llama.PageTokens * llama.PageTokens
	return &corpusPart{tokens: x.opening[:n], whole: true, sources: []contextfile.Source{source("", x.opening[:n])}}
}

func (x *compressor) joint(documents []*corpusPart, window int) []*corpusPart {
	all := &corpusPart{tokens: slices.Clone(x.opening)}
	for _, d := range documents {
		all.tokens = append(all.tokens, d.tokens...)
		all.sources = append(all.sources, d.sources...)
	}
	n := len(all.tokens) / llama.PageTokens * llama.PageTokens
	x.header.Rest = all.tokens[n:]
	all.tokens = all.tokens[:n]
	if n <= window {
		if n == 0 {
			return nil
		}
		return []*corpusPart{all}
	}
	parts := []*corpusPart{}
	behind := 0
	if h := x.head(); len(h.tokens) > 0 {
		parts, behind = append(parts, h), len(h.tokens)
	}
	for at := behind; at < n; at += window - behind {
		part := all.tokens[at:min(n, at+window-behind)]
		parts = append(parts, &corpusPart{tokens: part, behind: behind, sources: pieces(documents, at-len(x.opening), part)})
	}
	return parts
}

// pieces are what a run of the joined documents' tokens, which begins at a place, has of each.
func pieces(documents []*corpusPart, at int, run []int32) (all []contextfile.Source) {
	end := at + len(run)
	for _, d := range documents {
		if from, to := max(at, 0), min(end, len(d.tokens)); from < to {
			all = append(all, source(d.sources[0].Name, d.tokens[from:to]))
		}
		at, end = at-len(d.tokens), end-len(d.tokens)
	}
	return all
}

func (x *compressor) byDocument(documents []*corpusPart, window int) []*corpusPart {
	parts := []*corpusPart{}
	behind := 0
	if h := x.head(); len(h.tokens) > 0 {
		parts, behind = append(parts, h), len(h.tokens)
	}
	waits := &corpusPart{tokens: slices.Clone(x.opening[behind:])}
	for i, d := range documents {
		waits.tokens, waits.sources = append(waits.tokens, d.tokens...), append(waits.sources, d.sources...)
		if len(waits.tokens) < llama.PageTokens && i < len(documents)-1 {
			continue
		}
		if short := len(waits.tokens) < llama.PageTokens; short && len(parts) > 0 && !parts[len(parts)-1].whole {
			last := parts[len(parts)-1]
			last.tokens, last.sources = slices.Concat(last.tokens, waits.tokens), append(last.sources, waits.sources...)
			break
		} else if short {
			return nil
		}
		for from := 0; from < len(waits.tokens); {
			to := min(from+window-behind, len(waits.tokens))
			if left := len(waits.tokens) - to; left > 0 && left < llama.PageTokens {
				to -= llama.PageTokens // so that the last piece has a page
			}
			parts = append(parts, &corpusPart{tokens: waits.tokens[from:to], behind: behind, sources: waits.sources})
			from = to
		}
		waits = &corpusPart{}
	}
	return parts
}

// key is a hash of all that a part's slots depend on.
func (x *compressor) key(p *corpusPart) string {
	head := x.opening[:p.behind]
	text := fmt.Sprintf("%d %t %s %s %s %s %d %t %d\n%v\n%v\n", x.header.Version, x.header.Profile, x.header.Identity, x.header.Kernel,
		x.Format, x.Scorer, p.slots, p.whole, p.behind, head, p.tokens)
	if !p.whole {
		text += fmt.Sprintf("%v\n%v\n%v\n%s %d", x.texts.Prompt, x.texts.Notes, x.texts.Repeat, x.header.Notes, x.MaxNotes)
	}
	return hash([]byte(text))
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func bytesOf(tokens []int32) []byte { return fmt.Appendf(nil, "%v", tokens) }
