package qdrant

import (
	"strconv"

	"github.com/google/uuid"
	api "github.com/qdrant/go-client/qdrant"
)

// namespace is that of our points: the UUID of version 5 of this package's import path, as a URL.
var namespace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/ragpilot/ragpilot/retriever/qdrant"))

// PointID returns the ID of the point in which a document is stored: a UUID of version 5 of the tenant, if there is one,
// and the document's ID. Use it to find a document with other tools.
func PointID(tenant, id string) string {
	name := id
	if tenant != "" {
		name = strconv.Itoa(len(tenant)) + ":" + tenant + id // no other tenant and ID make the same
	}
	return uuid.NewSHA1(namespace, []byte(name)).String()
}

// pointName returns a point's ID as text.
func pointName(id *api.PointId) string {
	if u := id.GetUuid(); u != "" {
		return u
	}
	return strconv.FormatUint(id.GetNum(), 10)
}
