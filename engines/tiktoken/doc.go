// Package tiktoken counts tokens in process, with the vocabularies of OpenAI's models, which are compiled in: a
// [contextpilot.Tokenizer] without network or files. For models of these vocabularies the counts are exact; for
// others they are a better estimate than [contextpilot.Estimate], and the tokenizer of engines/openai, which asks
// the engine, is exact.
//
//	tokenizer, err := tiktoken.New("o200k_base")
//	if err != nil { ... }
//	pilot, err := contextpilot.New(contextpilot.Config{Tokenizer: tokenizer})
//
// A vocabulary takes a few ten milliseconds to set up the first time it is used, and stays in memory. Importing the
// package adds about 10 MB to a program.
package tiktoken
