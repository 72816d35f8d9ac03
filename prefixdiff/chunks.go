package prefixdiff

// Prompts are found by chunks of their texts. A chunk ends where a hash of the bytes in front says so, so that equal texts have equal
// chunks wherever they stand.
const (
	minChunk = 32
	maxChunk = 4 << 10
	// fineBytes of a part are cut into short chunks, as prompts often part near the beginning of a text.
	fineBytes            = 1 << 10
	fineMask, coarseMask = 1<<6 - 1, 1<<8 - 1
)

// gears are the numbers of the hash by which chunks end (Gear, as in FastCDC).
var gears = func() (g [256]uint64) {
	x := uint64(0x9E3779B97F4A7C15)
	for i := range g {
		x ^= x >> 12
		x ^= x << 25
		x ^= x >> 27
		g[i] = x * 0x2545F4914F6CDD1D
	}
	return g
}()

// chunk is a piece of a prompt.
type chunk struct {
	piece
	prefix uint64 // of it and all in front of it
	part   uint32
}

// piece is a chunk wherever it stands.
type piece struct {
	hash  uint64 // of its bytes, its kind and its author
	bytes uint32
}

// pieces cuts a part.
func (s splitter) pieces(part *Part, out []piece) []piece {
	text, at := part.Text, 0
	for first := true; first || at < len(text); first = false {
		n := cut(text[at:], at)
		out = append(out, piece{mix(s.hash(text[at:at+n]), uint64(part.Kind)<<8|uint64(part.Role)), uint32(n)})
		at += n
	}
	return out
}

// chunks cuts a prompt.
func (s splitter) chunks(p *Prompt) []chunk {
	out := make([]chunk, 0, 64)
	prefix := s.seed
	var pieces []piece
	for i := range p.Parts {
		pieces = s.pieces(&p.Parts[i], pieces[:0])
		for j, piece := range pieces {
			h := piece.hash
			if j == 0 {
				h ^= uint64(p.Parts[i].Turn+2) << 20
			}
			prefix = mix(prefix, h)
			out = append(out, chunk{piece: piece, prefix: prefix, part: uint32(i)})
		}
	}
	return out
}

// cut returns the length of the chunk at the beginning of text, which stands at byte at of its part.
func cut(text string, at int) int {
	if len(text) <= minChunk {
		return len(text)
	}
	mask := uint64(coarseMask) << 40
	if at < fineBytes {
		mask = uint64(fineMask) << 40
	}
	var h uint64
	for i := range min(len(text), maxChunk) {
		h = h<<1 + gears[text[i]]
		if i >= minChunk && h&mask == 0 {
			return i + 1
		}
	}
	return min(len(text), maxChunk)
}
