// Package extproc lets an Envoy gateway ask ragpilot about each request, over Envoy's external processing protocol
// (envoy.service.ext_proc.v3). There are two ways to use it:
//
//   - As a filter before the operator's own routing: a [Decider] gives back a body with its documents in a better order, and no
//     endpoint. The endpoint picker behind it (llm-d, the Gateway API inference extension) then sees prompts that share prefixes,
//     and routes them as it always does.
//   - As the endpoint picker: a [Decider] also names endpoints, for example those of an [engines.Router]. They are sent in the header and
//     the dynamic metadata that the endpoint picker protocol of the inference extension asks for (proposal 004, v1.0.0), its subsets
//     are kept to, and what served a request is given to [Decision].Served.
//
// [Server] is registered with a grpc.Server, together with gRPC's health service. Bodies may come buffered or in
// Envoy's mode FULL_DUPLEX_STREAMED.
package extproc
