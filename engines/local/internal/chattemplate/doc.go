// Package chattemplate turns a chat into the text that a model was trained on.
//
// Model files carry a Jinja program for this. It is not run: [Recognize] finds its family by what it writes, and
// [Template.Render] does what the programs of that family do:
//
//	ChatML  <|im_start|>user\n…<|im_end|>\n<|im_start|>assistant\n             SmolLM2, Qwen 2, Qwen 3
//	Zephyr  <s><|user|>\n…</s>\n<|assistant|>\n                                TinyLlama, Zephyr
//	Mistral <s>[INST] … [/INST]                                               Mistral 7B
//	Llama3  <|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n…<|eot_id|>…  Llama 3, 3.1, 3.2
//
// Tools are not rendered. A chat is rendered in pieces, so that what people and documents say cannot forge a turn: the
// name of a special token in a content stays ordinary text. Names that are no special tokens a content can forge: those of
// roles in Zephyr's chats, and [INST] with the vocabulary of Mistral 7B before v0.3.
package chattemplate
