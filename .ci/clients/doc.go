// Package clients has request bodies of real client libraries with a planted fault each, and many without one.
//
// A case is a small program that asks a recording server through openai-go, anthropic-sdk-go, langchaingo, Eino, ADK or an MCP
// client. It runs twice: healthy, where nothing but the end of the prompt may be new, and sick, where one thing is done that spoils
// the prefix: a clock in the system text, a tool list kept in a map. The labels of the sick run say which line must be found, against
// which, why and where. They were written before the code that they judge.
//
// The same bodies come at every run: all chance is seeded. Where a program ranges over a map, [Run.Shuffled] stands for the map, because
// a label must know the order. The measurements on an engine range over real maps.
package clients
