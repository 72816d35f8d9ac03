package weights

import "slices"

// enders are the names of tokens that end a turn or a text, in every family of models.
var enders = []string{"<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "</s>"}

// stop sets Stop to the ids (those above -1) and those of the usual names.
func (m *Model) stop(ids ...int32) {
	for _, name := range enders {
		if id, ok := m.Tokenizer.ID(name); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	m.Stop = slices.Compact(slices.DeleteFunc(ids, func(id int32) bool { return id < 0 || int(id) >= m.Vocab }))
}
