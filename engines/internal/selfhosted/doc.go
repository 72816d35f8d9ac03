// Package selfhosted is what the clients of vLLM and SGLang have in common: questions to a server that are no chats
// ([Client]), finding out what it can do ([Support], [Version], [Schema]), reading its metrics ([Metrics]), tenants' cache
// salts ([Salt]), the prompt's tokens in an answer ([Prompt]), and addresses of event publishers ([Endpoint]).
//
// Requests go through engines/openai; there is no HTTP here.
package selfhosted
