package settings

import (
	"fmt"

	"github.com/ragpilot/ragpilot/engines/kvevents"
	"github.com/ragpilot/ragpilot/internal/sidecar/tenant"
)

// autoEvents is the [Engine.Events] of an engine that is asked where it publishes.
const autoEvents = "auto"

// Engine names an engine behind InferAPIURL that reports what its cache stores and evicts. Without one, only POST /evict
// reports evictions.
type Engine struct {
	// Name stands in logs and metrics; empty: the engine's kind, and its number if there are several.
	Name string `yaml:"name"`
	// Kind is vllm or sglang.
	Kind string `yaml:"kind"`
	// URL is where the engine itself can be asked what it can do; empty: InferAPIURL. It is needed where that is a
	// balancer in front of several.
	URL string `yaml:"url"`
	// APIKey is what the engine asks for; empty: nothing. Clients' requests are not sent with it.
	APIKey Secret `yaml:"api_key"`
	// APIKeyFile is a file that holds it, in place of APIKey; [Config.ReadSecrets] clears it.
	APIKeyFile string `yaml:"api_key_file"`
	// Models are those that it serves; none: all that are asked for.
	Models []string `yaml:"models"`
	// Events is where it publishes, tcp://host:port or ipc://path, or auto.
	Events string `yaml:"events"`
	// Listen: Events is an address of this machine to which the engine connects.
	Listen bool `yaml:"listen"`
	// Replay is where past events can be asked for; empty: nowhere.
	Replay string `yaml:"replay"`
	// Topic is what the topics of its messages begin with; empty: any.
	Topic string `yaml:"topic"`
	// Ranks is its number of data-parallel ranks, whose ports count from those of Events and Replay; 0: one.
	Ranks int `yaml:"ranks"`
	// BlockSize is the number of tokens of a block, if it is to be known before the first event; 0: events report it.
	BlockSize int `yaml:"block_size"`
	// PromptTokens is how the tokens of prompts are learned: answer (asked for with the request, and taken out of the
	// answer), tokenize (asked of the engine's tokenizer meanwhile), or empty: answer where the engine is known to give
	// them, else tokenize.
	PromptTokens string `yaml:"prompt_tokens"`
}

const (
	maxEngines = 64
	maxRanks   = 256
)

// checkEngines adds what is wrong with engines.
func (p *problems) checkEngines(engines []Engine) {
	if len(engines) > maxEngines {
		p.add("engines", len(engines), fmt.Sprintf("want at most %d", maxEngines))
		return
	}
	names := map[string]int{}
	for i, e := range engines {
		field := fmt.Sprintf("engines[%d].", i)
		if j, twice := names[e.Name]; twice && e.Name != "" {
			p.add(field+"name", e.Name, fmt.Sprintf("is that of engines[%d] too", j))
		}
		names[e.Name] = i
		p.want(e.Name == "" || tenant.Valid(e.Name), field+"name", e.Name, tenant.Want)
		p.oneOf(field+"kind", e.Kind, "vllm", "sglang")
		if e.URL != "" {
			p.checkURL(field+"url", e.URL)
		}
		p.key(field+"api_key", e.APIKey)
		p.oneOf(field+"prompt_tokens", e.PromptTokens, "", "answer", "tokenize")
		p.want(e.BlockSize >= 0, field+"block_size", e.BlockSize, "want at least 0")
		p.checkEvents(field, e)
	}
}

// checkEvents adds what is wrong with where an engine publishes.
func (p *problems) checkEvents(field string, e Engine) {
	if e.Ranks < 0 || e.Ranks > maxRanks {
		p.add(field+"ranks", e.Ranks, fmt.Sprintf("want 0 to %d", maxRanks))
		return
	}
	if e.Events == autoEvents {
		if e.Listen || e.Replay != "" || e.Ranks > 0 {
			p.add(field+"events", e.Events, "the engine is asked for listen, replay and ranks: want an address if they are given")
		}
		return
	}
	if err := kvevents.Check(e.Events, e.Listen); err != nil {
		p.add(field+"events", e.Events, "want auto, or: "+err.Error())
		return
	}
	if e.Replay != "" {
		if err := kvevents.Check(e.Replay, false); err != nil {
			p.add(field+"replay", e.Replay, err.Error())
			return
		}
	}
	if _, err := e.Sources(); err != nil {
		p.add(field+"ranks", e.Ranks, err.Error())
	}
}

// Sources are where the engine publishes, for each rank; none: the engine is asked.
func (e Engine) Sources() ([]kvevents.Source, error) {
	if e.Events == autoEvents {
		return nil, nil
	}
	source := kvevents.Source{Name: e.Name, Endpoint: e.Events, Listen: e.Listen, Replay: e.Replay, Topic: e.Topic, Rank: kvevents.AnyRank}
	if e.Ranks <= 1 {
		return []kvevents.Source{source}, nil
	}
	return kvevents.Ranks(source, e.Ranks)
}

// named gives every engine a name.
func named(engines []Engine) []Engine {
	out := make([]Engine, len(engines))
	for i, e := range engines {
		if e.Name == "" {
			if e.Name = e.Kind; len(engines) > 1 {
				e.Name = fmt.Sprintf("%s-%d", e.Kind, i)
			}
		}
		out[i] = e
	}
	return out
}
