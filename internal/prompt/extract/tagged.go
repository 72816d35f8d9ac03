package extract

import (
	"slices"
	"strings"
)

var (
	itemNames    = []string{"document", "context", "doc", "passage", "reference", "file"}
	wrapperNames = []string{"documents", "contexts", "docs", "passages", "references", "files"}
)

// betweenTags is the layout of documents between tags of a name, in a wrapper if that has a name.
func betweenTags(prefix, wrapper, name, suffix string) layout {
	item := func(doc string) string { return "<" + name + ">" + doc + "</" + name + ">" }
	return layout{item: item, render: func(docs []string) string {
		items := make([]string, len(docs))
		for i, d := range docs {
			items[i] = item(d)
		}
		block := strings.Join(items, "\n")
		if wrapper != "" {
			block = "<" + wrapper + ">\n" + block + "\n</" + wrapper + ">"
		}
		return prefix + block + suffix
	}}
}

// region is a row of elements that may be a text's documents.
type region struct {
	element           // the wrapper; zero if there is none
	items   []element // at least one, at least two without a wrapper
}

// findTagged looks for documents between tags, first for those of the name that was asked for, then for the known
// ones. present says that some tag is closed in the text, whether it was understood or not.
func findTagged(text, asked string) (f Found, ok, present bool) {
	items, wrappers := itemNames, wrapperNames
	if asked != "" {
		items = slices.Concat([]string{asked}, itemNames)
		wrappers = slices.Concat([]string{asked + "s"}, wrapperNames)
	}
	vocabulary := map[string]bool{}
	for _, name := range slices.Concat(items, wrappers) {
		vocabulary[name] = true
	}
	tags := scanTags(text, vocabulary)
	present = slices.ContainsFunc(tags, func(t tag) bool { return t.close && !t.odd })
	if !present {
		return Found{}, false, false
	}
	if asked != "" && slices.ContainsFunc(tags, func(t tag) bool { return t.name == asked }) {
		items = items[:1]
	}
	r, ok := outermost(text, tags, items, wrappers)
	if !ok {
		return Found{}, false, true
	}
	return r.found(text), true, true
}

// outermost returns the first region of the text: what begins later may stand inside a document of it. A region behind
// tags that make no sense, or no region, is not taken: it may stand inside a document of which nothing is sure.
func outermost(text string, tags []tag, items, wrappers []string) (best region, ok bool) {
	doubt := len(text)
	for _, name := range items {
		first := slices.IndexFunc(tags, func(t tag) bool { return t.name == name })
		if first < 0 {
			continue
		}
		list, paired := elements(tags, name)
		r, found := region{}, false
		if paired {
			r, found = regionOf(text, tags, list, wrappers)
		}
		switch {
		case !paired || !found && len(list) > 1:
			doubt = min(doubt, tags[first].start)
		case found && (!ok || r.start() < best.start()):
			best, ok = r, true
		}
	}
	return best, ok && best.start() < doubt
}

func (r region) start() int {
	if r.open.name != "" {
		return r.open.start
	}
	return r.items[0].open.start
}

// regionOf returns the elements that are documents: those in a wrapper, or all of them if there is none.
func regionOf(text string, tags []tag, list []element, wrappers []string) (region, bool) {
	outside := betweenElements(tags, list)
	if r, ok := wrapped(outside, list, wrappers); ok {
		return r, true
	}
	if len(list) < 2 {
		return region{}, false
	}
	first, last := list[0].open.start, list[len(list)-1].close.start
	if slices.ContainsFunc(outside, func(t tag) bool { return t.start > first && t.start < last }) {
		return region{}, false
	}
	if slices.ContainsFunc(list, func(e element) bool { return isBlank(e.content().of(text)) }) {
		return region{}, false // more likely words about the tags
	}
	return region{items: list}, true
}

// betweenElements returns the tags that are not part of an element or inside one.
func betweenElements(tags []tag, list []element) []tag {
	var out []tag
	for _, t := range tags {
		for len(list) > 0 && list[0].close.end <= t.start {
			list = list[1:]
		}
		if len(list) == 0 || t.end <= list[0].open.start {
			out = append(out, t)
		}
	}
	return out
}

// wrapped returns the elements between the tags of a wrapper. There must be one such region only, whatever the name:
// a document that ends the wrapper has to open another one for the rest of the documents. Elements outside (an example
// of the format) and single tags of wrappers outside (words about it) are harmless, but not both: together they are
// what a document that ends the wrapper looks like.
func wrapped(outside []tag, list []element, wrappers []string) (found region, ok bool) {
	var (
		cur                region
		stray, loose, torn bool // torn: there are tags of other documents in the wrapper
	)
	for i, j := 0, 0; i < len(outside) || j < len(list); {
		if i == len(outside) || j < len(list) && list[j].open.start < outside[i].start {
			if cur.open.name == "" {
				loose = true
			} else {
				cur.items = append(cur.items, list[j])
			}
			j++
			continue
		}
		t := outside[i]
		i++
		switch {
		case t.odd || !slices.Contains(wrappers, t.name):
			torn = torn || cur.open.name != ""
		case len(cur.items) > 0 && (!t.close || t.name != cur.open.name || torn || ok):
			return region{}, false // one wrapper in the other, or tags between the documents, or a second region
		case len(cur.items) > 0:
			cur.close = t
			found, ok, cur = cur, true, region{}
		case !t.close:
			stray = stray || cur.open.name != ""
			cur, torn = region{element: element{open: t}}, false
		case t.name == cur.open.name:
			cur = region{}
		default:
			stray = true
		}
	}
	if len(cur.items) > 0 {
		return region{}, false // never closed
	}
	stray = stray || cur.open.name != ""
	return found, ok && (!stray || !loose)
}

// found turns the region into what callers see.
func (r region) found(text string) Found {
	ranges, items := make([]span, len(r.items)), make([]span, len(r.items))
	plain := !r.open.attrs
	for i, e := range r.items {
		ranges[i] = e.content()
		items[i] = span{e.open.start, e.close.end}
		plain = plain && !e.open.attrs && (i == 0 || isBlank(text[items[i-1].end:e.open.start]))
	}
	block := span{items[0].start, items[len(items)-1].end}
	if r.open.name != "" {
		plain = plain && isBlank(text[r.open.end:block.start]) && isBlank(text[block.end:r.close.start])
		block = span{r.open.start, r.close.end}
	}
	prefix, suffix := text[:block.start], text[block.end:]
	return Found{
		Mode: XMLTag, Docs: contents(text, ranges), Prefix: prefix, Suffix: suffix,
		text: text, items: items, form: betweenTags(prefix, r.open.name, r.items[0].open.name, suffix), plain: plain,
	}
}
