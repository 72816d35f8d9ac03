package pdftext

import (
	"iter"

	"github.com/ledongthuc/pdf"
)

// usualWidth is the width of a glyph, in parts of the size, of fonts that do not have it.
const usualWidth = 0.5

// maxWidths bounds the widths that are read of a font.
const maxWidths = 1 << 16

// font decodes and measures the strings of one font.
type font struct {
	enc pdf.TextEncoding

	// Of simple fonts, with one byte a glyph: thousandths of the size, from the code first.
	first  int
	simple []float64
	// Of composite fonts, with two bytes a glyph, PDF 32000, 9.7.4.3.
	composite bool
	usual     float64
	wide      map[int]float64
}

// font returns the font of the page with this name.
func (w *words) font(name string) *font {
	if f, ok := w.fonts[name]; ok {
		return f
	}
	p := w.page.Font(name)
	if cmap := p.V.Key("ToUnicode"); cmap.Kind() == pdf.Stream {
		checkStream(cmap)
	}
	f := &font{enc: p.Encoder(), first: p.FirstChar(), simple: p.Widths()}
	if p.V.Key("Subtype").Name() == "Type0" {
		f.readComposite(p.V.Key("DescendantFonts").Index(0))
	}
	w.fonts[name] = f
	return f
}

// readComposite reads the array W: "c [w1 w2 …]" or "first last w", again and again.
func (f *font) readComposite(v pdf.Value) {
	f.composite, f.usual, f.wide = true, 1000, map[int]float64{}
	if dw := v.Key("DW"); !dw.IsNull() {
		f.usual = dw.Float64()
	}
	w := v.Key("W")
	for i := 0; i+1 < w.Len() && len(f.wide) < maxWidths; {
		first := int(w.Index(i).Int64())
		if list := w.Index(i + 1); list.Kind() == pdf.Array {
			for k := range list.Len() {
				f.wide[first+k] = list.Index(k).Float64()
			}
			i += 2
			continue
		}
		last, width := int(w.Index(i+1).Int64()), w.Index(i+2).Float64()
		for c := first; c <= last && len(f.wide) < maxWidths; c++ {
			f.wide[c] = width
		}
		i += 3
	}
}

// widths yields the width of each glyph of a string, in parts of the size, and whether it is a space of one byte, which
// alone is stretched by word spacing.
func (f *font) widths(raw string) iter.Seq2[float64, bool] {
	return func(yield func(float64, bool) bool) {
		if f.composite {
			for i := 0; i+1 < len(raw); i += 2 {
				width, ok := f.wide[int(raw[i])<<8|int(raw[i+1])]
				if !ok {
					width = f.usual
				}
				if !yield(width/1000, false) {
					return
				}
			}
			return
		}
		for i := range len(raw) {
			width := usualWidth
			if at := int(raw[i]) - f.first; at >= 0 && at < len(f.simple) && f.simple[at] > 0 {
				width = f.simple[at] / 1000
			}
			if !yield(width, raw[i] == ' ') {
				return
			}
		}
	}
}
