// Package profile holds settings of a [contextpilot.Config] that change what the model reads, by name or from a file. `ragpilot eval`
// writes such a file for a model that it has measured; chat, serve and eval take one as --profile.
//
//	p, err := profile.Load("safe") // or the name of a file
//	config, err := p.Apply(contextpilot.Config{})
//	pilot, err := contextpilot.New(config)
package profile
