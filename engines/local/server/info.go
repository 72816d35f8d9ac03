package server

import (
	"net/http"

	"github.com/ragpilot/ragpilot/internal/openaiserver"
)

// model is an entry of /v1/models.
type model struct {
	openaiserver.Model
	Root   string  `json:"root"`
	Parent *string `json:"parent"` // always null
	Window int     `json:"max_model_len"`
}

func (s *Server) entry() model {
	name := s.engine.Model()
	return model{openaiserver.NewModel(name, s.created), name, nil, s.engine.Context()}
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	openaiserver.WriteJSON(w, openaiserver.ModelList(s.entry()))
}

func (s *Server) oneModel(w http.ResponseWriter, r *http.Request) {
	if name := r.PathValue("model"); name != s.engine.Model() {
		noModel(name).Write(w)
		return
	}
	openaiserver.WriteJSON(w, s.entry())
}

// health has no body, as vLLM's.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if s.isDraining() {
		closing().Write(w)
	}
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	openaiserver.WriteJSON(w, map[string]string{"version": s.config.Version})
}

// reset empties the cache. As in vLLM that is refused while requests use it.
func (s *Server) reset(w http.ResponseWriter, _ *http.Request) {
	free := s.engine.Stats().UsedBlocks == 0
	if free {
		s.engine.Clear()
	}
	openaiserver.WriteJSON(w, map[string]bool{"success": free})
}

// forget empties the cache in memory and deletes the files of one salt, or of requests without one.
func (s *Server) forget(w http.ResponseWriter, r *http.Request) {
	m, err := s.read(w, r)
	salt := ""
	if err == nil {
		err = m.get("cache_salt", &salt, "a text")
	}
	if err == nil {
		if err = s.engine.Forget(salt); err != nil {
			err = &openaiserver.Refusal{Status: http.StatusInternalServerError, Message: "files were not deleted: " + err.Error()}
		}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	openaiserver.WriteJSON(w, map[string]bool{"success": true})
}

// sources says where cache events are published, by data-parallel rank.
func (s *Server) sources(w http.ResponseWriter, _ *http.Request) {
	type source struct {
		Publisher string  `json:"publisher"`
		Endpoint  string  `json:"endpoint"`
		Replay    *string `json:"replay_endpoint"`
		Steps     int     `json:"buffer_steps"`
		Topic     string  `json:"topic"`
	}
	ranks := map[string]source{}
	if s.config.Events != nil {
		c := s.config.Events.Config()
		ranks["0"] = source{"zmq", c.Endpoint, nil, c.Buffer, c.Topic}
		if c.Replay != "" {
			ranks["0"] = source{"zmq", c.Endpoint, &c.Replay, c.Buffer, c.Topic}
		}
	}
	openaiserver.WriteJSON(w, ranks)
}

// schema lists the endpoints, and the members that a body may have.
func (s *Server) schema(w http.ResponseWriter, _ *http.Request) {
	type object = map[string]any
	paths := object{}
	for path, e := range s.endpoints() {
		paths[path] = object{map[string]string{http.MethodGet: "get", http.MethodPost: "post"}[e.Method]: object{}}
	}
	properties := func(more ...string) object {
		all := object{}
		for _, name := range more {
			all[name] = object{}
		}
		for _, m := range engineMembers {
			all[m.name] = object{}
		}
		return object{"type": "object", "properties": all}
	}
	common := []string{"model", "stream", "stream_options", "request_id", "return_token_ids"}
	openaiserver.WriteJSON(w, object{
		"openapi": "3.1.0",
		"info":    object{"title": "ragpilot's local engine", "version": s.config.Version},
		"paths":   paths,
		"components": object{"schemas": object{
			"ChatCompletionRequest": properties(append(common, "messages")...),
			"CompletionRequest":     properties(append(common, "prompt", "add_special_tokens")...),
		}},
	})
}
