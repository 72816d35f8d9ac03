// Package kubernetes is a [discover.Source] of the pods behind a Kubernetes service, from its EndpointSlices.
//
// It lists discovery.k8s.io/v1 at each interval over the API server's plain HTTP interface; the official client would bring some sixty
// modules for one request. The pod's service account needs the verb list on endpointslices in its namespace.
//
//	source, err := kubernetes.New(kubernetes.Options{Service: "vllm", Port: "http"})
package kubernetes
