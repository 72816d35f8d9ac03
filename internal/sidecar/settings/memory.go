package settings

import (
	"path/filepath"

	"github.com/ragpilot/ragpilot/memory"
)

// Memory says where memories are kept, and how they are made; with a folder the server has Mem0's REST API.
type Memory struct {
	// Dir is a folder with a file for each tenant; empty: there are no memories.
	Dir string `yaml:"dir"`
	// Extract says what is remembered of messages: verbatim (what users state), everything (each message as it is), add-only or
	// reconcile (facts that a model finds; reconcile lets them replace older ones). Empty: verbatim.
	Extract string `yaml:"extract"`
	// Model is asked for facts, at InferAPIURL; needed unless messages are kept verbatim.
	Model string `yaml:"model"`
	// Embedder says by what memories are found: minilm (the sentence model in this process), minilm:DIR (in that folder), lexical
	// (words alone), or the URL of a server that answers /v1/embeddings. auto, or empty, is minilm, and words alone while the
	// model cannot be had.
	Embedder string `yaml:"embedder"`
	// EmbedderModel is the model of the server at Embedder.
	EmbedderModel string `yaml:"embedder_model"`
	// EmbedderKey is the key that the server at Embedder asks for; empty: none.
	EmbedderKey Secret `yaml:"embedder_key"`
	// EmbedderKeyFile is a file that holds EmbedderKey, in place of it; [Config.ReadSecrets] clears it.
	EmbedderKeyFile string `yaml:"embedder_key_file"`
}

// Embedding returns what package embedder opens.
func (m Memory) Embedding() memory.EmbedderSetting {
	return memory.EmbedderSetting{Value: m.Embedder, Model: m.EmbedderModel, Key: m.EmbedderKey.Reveal()}
}

// asks reports whether a model is asked what is to be remembered.
func (m *Memory) asks() bool { return m.Extract == "add-only" || m.Extract == "reconcile" }

func (p *problems) checkMemory(m Memory) {
	p.oneOf("memory.extract", m.Extract, "", "verbatim", "everything", "add-only", "reconcile")
	asks := m.asks()
	p.want(!asks || m.Model != "", "memory.model", m.Model, "want the name of a model, as memory.extract is "+m.Extract)
	p.checkEmbedder(m)
	p.want(m.Dir != "" || !asks && m.Model == "", "memory.dir", m.Dir, "want a folder, as memory.extract or memory.model is set")
}

// checkEmbedder shows no password that stands in a URL.
func (p *problems) checkEmbedder(m Memory) {
	e := m.Embedding()
	if err := e.Check(); err != nil {
		p.add("memory.embedder", redacted(m.Embedder), err.Error())
		return
	}
	if e.Server() && m.EmbedderModel == "" {
		p.add("memory.embedder_model", "", memory.ErrNoEmbedderModel.Error()+", as memory.embedder is a URL")
	}
	p.key("memory.embedder_key", m.EmbedderKey)
}

// embedderUnder returns the embedder with its folder, if it has one, relative to dir.
func (m Memory) embedderUnder(dir string) string {
	folder, ok := m.Embedding().Dir()
	if !ok || folder == "" || filepath.IsAbs(folder) {
		return m.Embedder
	}
	return memory.MiniLMEmbedder + ":" + filepath.Join(dir, folder)
}
