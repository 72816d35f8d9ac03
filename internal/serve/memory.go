package serve

// Memory says where memories are kept, and how they are made; with a folder the server has Mem0's REST API.
type Memory struct {
	// Dir is a folder with a file for each tenant; empty: there are no memories.
	Dir string `yaml:"dir"`
	// Extract says what is remembered of messages: verbatim (each as it is), add-only or reconcile (facts that a model
	// finds; reconcile lets them replace older ones). Empty: verbatim.
	Extract string `yaml:"extract"`
	// Model is asked for facts, at InferAPIURL; needed unless messages are kept verbatim.
	Model string `yaml:"model"`
}

// asks reports whether a model is asked what is to be remembered.
func (m *Memory) asks() bool { return m.Extract == "add-only" || m.Extract == "reconcile" }

func (p *problems) checkMemory(m Memory) {
	p.oneOf("memory.extract", m.Extract, "", "verbatim", "add-only", "reconcile")
	asks := m.asks()
	if asks && m.Model == "" {
		p.add("memory.model", m.Model, "want the name of a model, as memory.extract is "+m.Extract)
	}
	if m.Dir == "" && (asks || m.Model != "") {
		p.add("memory.dir", m.Dir, "want a folder, as memory.extract or memory.model is set")
	}
}
