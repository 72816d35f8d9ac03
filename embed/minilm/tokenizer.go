package minilm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// tokenizer turns text into the numbers of tokens, as BERT's uncased models want it.
type tokenizer struct {
	heads, tails map[string]int32 // pieces that begin a word, and pieces that go on ("##" taken off)
	longest      int              // length of the longest piece, in bytes
	maxRunes     int              // longer words are unknown

	special           []specialToken
	unknown, cls, sep int32
	clean             cleaner
}

// specialToken is a token that is recognised in the text as it is, such as "[SEP]".
type specialToken struct {
	text string
	id   int32
}

// tokenizerFile is what is read of tokenizer.json.
type tokenizerFile struct {
	Added []struct {
		ID         int32  `json:"id"`
		Content    string `json:"content"`
		SingleWord bool   `json:"single_word"`
		LeftStrip  bool   `json:"lstrip"`
		RightStrip bool   `json:"rstrip"`
		Normalized bool   `json:"normalized"`
	} `json:"added_tokens"`
	Normalizer struct {
		Type         string `json:"type"`
		CleanText    bool   `json:"clean_text"`
		Chinese      bool   `json:"handle_chinese_chars"`
		StripAccents *bool  `json:"strip_accents"`
		Lowercase    bool   `json:"lowercase"`
	} `json:"normalizer"`
	PreTokenizer struct {
		Type string `json:"type"`
	} `json:"pre_tokenizer"`
	Model struct {
		Type     string           `json:"type"`
		Unknown  string           `json:"unk_token"`
		Prefix   string           `json:"continuing_subword_prefix"`
		MaxRunes int              `json:"max_input_chars_per_word"`
		Vocab    map[string]int32 `json:"vocab"`
	} `json:"model"`
}

// parseTokenizer reads tokenizer.json, for a model whose vocabulary has that size.
func parseTokenizer(data []byte, vocabulary int) (*tokenizer, error) {
	var f tokenizerFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	if err := f.check(vocabulary); err != nil {
		return nil, err
	}
	t := &tokenizer{
		heads: map[string]int32{}, tails: map[string]int32{}, maxRunes: f.Model.MaxRunes,
		clean: cleaner{lower: f.Normalizer.Lowercase, accents: f.Normalizer.Lowercase},
	}
	if f.Normalizer.StripAccents != nil {
		t.clean.accents = *f.Normalizer.StripAccents
	}
	for piece, id := range f.Model.Vocab {
		t.longest = max(t.longest, len(piece))
		if tail, ok := strings.CutPrefix(piece, f.Model.Prefix); ok {
			t.tails[tail] = id
		} else {
			t.heads[piece] = id
		}
	}
	for _, a := range f.Added {
		t.special = append(t.special, specialToken{a.Content, a.ID})
	}
	return t, t.findNamed(f.Model.Unknown)
}

func (f *tokenizerFile) check(vocabulary int) error {
	for _, c := range []struct{ name, got, want string }{
		{"normalizer.type", f.Normalizer.Type, "BertNormalizer"},
		{"pre_tokenizer.type", f.PreTokenizer.Type, "BertPreTokenizer"},
		{"model.type", f.Model.Type, "WordPiece"},
	} {
		if c.got != c.want {
			return fmt.Errorf("%s = %q, want %q", c.name, c.got, c.want)
		}
	}
	switch {
	case !f.Normalizer.CleanText || !f.Normalizer.Chinese:
		return errors.New("normalizer: clean_text and handle_chinese_chars must be true")
	case f.Model.Prefix == "":
		return errors.New("model.continuing_subword_prefix is empty")
	case f.Model.MaxRunes < 1 || f.Model.MaxRunes > 1000:
		return fmt.Errorf("model.max_input_chars_per_word = %d, want 1 to 1000", f.Model.MaxRunes)
	}
	for piece, id := range f.Model.Vocab {
		if id < 0 || int(id) >= vocabulary {
			return fmt.Errorf("model.vocab: %q has the number %d of %d", piece, id, vocabulary)
		}
	}
	return f.checkAdded(vocabulary)
}

func (f *tokenizerFile) checkAdded(vocabulary int) error {
	if len(f.Added) > 100 {
		return fmt.Errorf("added_tokens: %d, want at most 100", len(f.Added))
	}
	for _, a := range f.Added {
		switch {
		case a.Content == "":
			return fmt.Errorf("added_tokens: the one with the number %d is empty", a.ID)
		case a.ID < 0 || int(a.ID) >= vocabulary:
			return fmt.Errorf("added_tokens: %q has the number %d of %d", a.Content, a.ID, vocabulary)
		case a.SingleWord || a.LeftStrip || a.RightStrip || a.Normalized:
			return fmt.Errorf("added_tokens: %q is single_word, lstrip, rstrip or normalized, want none of them", a.Content)
		}
	}
	return nil
}

// findNamed looks up the tokens that every text needs.
func (t *tokenizer) findNamed(unknown string) error {
	for _, n := range []struct {
		name string
		to   *int32
	}{{unknown, &t.unknown}, {"[CLS]", &t.cls}, {"[SEP]", &t.sep}} {
		id, ok := t.heads[n.name]
		if !ok {
			return fmt.Errorf("model.vocab has no %q", n.name)
		}
		*n.to = id
	}
	return nil
}

// encode returns the tokens of a text between [CLS] and [SEP], limit of them at most. It stops reading when it has them.
func (t *tokenizer) encode(text string, limit int) []int32 {
	ids := make([]int32, 1, min(limit, len(text)/3+3))
	ids[0] = t.cls
	for text != "" && len(ids) < limit-1 {
		start, end, id := t.nextSpecial(text)
		t.clean.words(text[:start], func(word string) bool {
			ids = t.pieces(ids, word)
			return len(ids) < limit-1
		})
		if end > start {
			ids = append(ids, id)
		}
		text = text[end:]
	}
	return append(ids[:min(len(ids), limit-1)], t.sep)
}

// nextSpecial returns where the first special token is, the longest of those that begin there. Without one both places are
// the end of the text.
func (t *tokenizer) nextSpecial(text string) (start, end int, id int32) {
	start, end = len(text), len(text)
	for _, s := range t.special {
		i := strings.Index(text[:min(len(text), start+len(s.text))], s.text)
		if i >= 0 && (i < start || i+len(s.text) > end) {
			start, end, id = i, i+len(s.text), s.id
		}
	}
	return start, end, id
}

// pieces appends the longest pieces that make up a word, or the unknown token if there are none.
func (t *tokenizer) pieces(ids []int32, word string) []int32 {
	if len(word) > t.maxRunes && utf8.RuneCountInString(word) > t.maxRunes {
		return append(ids, t.unknown)
	}
	known := len(ids)
	for table := t.heads; word != ""; table = t.tails {
		n, id := t.match(table, word)
		if n == 0 {
			return append(ids[:known], t.unknown)
		}
		ids = append(ids, id)
		word = word[n:]
	}
	return ids
}

// match finds the longest beginning of text that is in the table.
func (t *tokenizer) match(table map[string]int32, text string) (n int, id int32) {
	for n = min(len(text), t.longest); n > 0; n-- {
		if n < len(text) && !utf8.RuneStart(text[n]) {
			continue
		}
		if id, ok := table[text[:n]]; ok {
			return n, id
		}
	}
	return 0, 0
}
