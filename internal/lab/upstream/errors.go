package upstream

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// refusal is an error answer.
type refusal struct {
	status  int
	message string
}

func (e *refusal) Error() string { return strconv.Itoa(e.status) + " " + e.message }

func badRequest(message string) error { return &refusal{http.StatusBadRequest, message} }

// refuse answers in the error shape of the OpenAI API.
func refuse(w http.ResponseWriter, e *refusal) {
	kind := "invalid_request_error"
	if e.status == http.StatusNotFound {
		kind = "not_found_error"
	}
	type body struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    int     `json:"code"`
	}
	writeJSON(w, e.status, map[string]body{"error": {Message: e.message, Type: kind, Code: e.status}})
}

// writeJSON sends what cannot fail to encode.
func writeJSON(w http.ResponseWriter, status int, v any) {
	data, _ := json.Marshal(v)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data)
}
