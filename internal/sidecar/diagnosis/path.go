package diagnosis

import "strings"

// path is how a place in a request is shown: whole if texts are kept.
func (m *Misses) path(p string) string {
	if m.opt.KeepTexts {
		return clipPath(p)
	}
	return cutPath(p)
}

// maxPath is the length in bytes of the longest path that is kept.
const maxPath = 256

func clipPath(p string) string {
	return strings.Clone(strings.ToValidUTF8(p[:min(len(p), maxPath)], ""))
}

// members are the names that paths are made of: those of the APIs. Others are the user's, such as the properties in a tool's schema.
var members = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq(`
		body params request input messages contents content parts text prompt input_ids system instructions systemInstruction
		system_instruction model lora_path cache_salt extra_key prompt_cache_key reasoning_effort reasoning effort verbosity speed
		chat_template chat_template_kwargs response_format output_config output_format format json_schema schema tools functions tool_choice
		thinking function functionDeclarations function_declarations name description parameters parametersJsonSchema input_schema
		inputSchema strict type tool_calls tool_call_id function_call arguments id tool_use_id call_id args functionCall functionResponse
		response output result summary image_url url source data file_id input_audio file file_data video_url audio_url file_url image
		inlineData inline_data fileData fileUri file_uri mime_type media_type binary reasoning_content encrypted_content refusal signature
		cachedContent generationConfig toolConfig service_tier additional_tools custom grammar definition variables`) {
		members[name] = true
	}
}

// inside are the members whose values have names of the user's.
var inside = map[string]bool{
	"parameters": true, "parametersJsonSchema": true, "input_schema": true, "inputSchema": true, "schema": true, "json_schema": true,
	"arguments": true,
	"args":      true, "chat_template_kwargs": true, "response": true, "result": true, "variables": true, "definition": true,
}

// cutPath returns the front of a path up to where names of the user's may begin: tools[0].function.parameters. All of its names are
// names of the APIs.
func cutPath(p string) string {
	end := 0
	for at := 0; at < len(p); {
		next := strings.IndexByte(p[at:], '.')
		if next < 0 {
			next = len(p) - at
		}
		name, index, list := strings.Cut(p[at:at+next], "[")
		if !members[name] || list && !isIndex(index) {
			break
		}
		end = at + next
		if inside[name] || name == "input" && at > 0 && !wrapped(p[:at]) {
			break
		}
		at = end + 1
	}
	return strings.Clone(p[:end])
}

// wrapped reports whether what stands in front are the members that a line of a batch file wraps a body in.
func wrapped(front string) bool {
	switch front {
	case "body.", "params.", "request.", "input.":
		return true
	}
	return false
}

// isIndex reports whether a text is a number in brackets, without the first one.
func isIndex(s string) bool {
	number, ok := strings.CutSuffix(s, "]")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}
