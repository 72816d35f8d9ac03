package clients

// open are faults that are known: a label says one thing and the code another. One that is gone must be taken off the list.
var open = map[string][]string{
	"grid-clock-compact-description-eino":     {"line 3: cause random-id, want clock"},
	"grid-clock-compact-history-eino":         {"line 3: cause random-id, want clock"},
	"grid-clock-compact-first-eino":           {"line 3: cause random-id, want clock"},
	"grid-user-name-german-description-adk":   {"line 3: cause tool-set, want user-name"},
	"grid-user-name-german-history-adk":       {"line 3: cause edited-history, want user-name"},
	"grid-user-name-german-first-adk":         {"line 3: cause template, want user-name"},
	"grid-user-name-talk-to-first-chat":       {"line 3: cause template, want user-name"},
	"grid-user-name-talk-to-middle-chat":      {"line 3: cause template, want user-name"},
	"grid-user-name-talk-to-last-chat":        {"line 3: nothing found, want user-name at messages[0].content against 1"},
	"grid-whitespace-tabs-anthropic":          {"line 3: nothing found, want whitespace at system[0].text against 1"},
	"grid-template-a-sentence-last-anthropic": {"line 3: nothing found, want template at system[0].text against 1"},
	"grid-template-marks-of-a-list-eino":      {"line 3: cause document-order, want template"},
	"grid-template-marks-of-a-list-responses": {"line 3: cause document-order, want template"},
	"grid-document-order-json-2-anthropic":    {"line 2: cause map-order, want document-order"},
	"grid-document-order-json-3-langchaingo":  {"line 2: cause map-order, want document-order"},
	"grid-document-order-json-6-eino":         {"line 2: cause map-order, want document-order"},
	"stable-code": {
		"line 16: found user-name at messages[1].content against 14, want nothing",
		"line 30: found user-name at messages[1].content against 28, want nothing",
		"line 44: found user-name at messages[1].content against 42, want nothing",
	},
	"chat-a-tool-described-anew":             {"line 2: path tools[1].function.description, want tools[1]"},
	"anthropic-a-schema-with-a-new-property": {"line 2: path tools[1].input_schema.properties, want tools[1]"},
	"mcp-a-server-that-describes-anew":       {"line 2: path tools[2].function.description, want tools[2]"},
}
