package qdrant

import (
	"context"
	"strconv"

	"github.com/google/uuid"
	api "github.com/qdrant/go-client/qdrant"

	"github.com/ragpilot/ragpilot/retriever/internal/vectorstore"
	"github.com/ragpilot/ragpilot/retriever/store"
)

// namespace is that of our points: the UUID of version 5 of this package's import path, as a URL.
var namespace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/ragpilot/ragpilot/retriever/qdrant"))

// PointID returns the ID of the point in which Upsert stores a new document: a UUID of version 5 of the tenant, if there is one,
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

// named returns the ID of a point with that name; nil if no point can have it.
func named(name string) *api.PointId {
	if n, err := strconv.ParseUint(name, 10, 64); err == nil && strconv.FormatUint(n, 10) == name {
		return api.NewIDNum(n)
	}
	if u, err := uuid.Parse(name); err == nil && u.String() == name {
		return api.NewIDUUID(name)
	}
	return nil
}

// foreign returns, by tenant and ID, the points of those documents that searches know by the ID of their point, because
// another program wrote them. It asks the server only for IDs that have the form of a point's. An argument that the server refused is bad.
func (x *Index) foreign(ctx context.Context, docs []store.Document, bad error) (map[vectorstore.Name]*api.PointId, error) {
	var ids []*api.PointId
	for _, d := range docs {
		if id := named(d.ID); id != nil {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	l := x.opts.Layout
	keys := []string{l.ID}
	if l.tenants() {
		keys = append(keys, l.Tenant)
	}
	get := &api.GetPoints{CollectionName: x.opts.Collection, Ids: ids, WithPayload: api.NewWithPayloadInclude(keys...)}
	points, err := read(ctx, x, bad, x.client.Get, get)
	if err != nil {
		return nil, err
	}
	asked := make(map[vectorstore.Name]bool, len(docs))
	for _, d := range docs {
		asked[vectorstore.NameOf(d)] = true
	}
	out := make(map[vectorstore.Name]*api.PointId, len(points))
	for _, p := range points {
		name := vectorstore.Name{ID: pointName(p.GetId())}
		if l.tenants() {
			name.Tenant = p.GetPayload()[l.Tenant].GetStringValue()
		}
		if asked[name] && l.id(p.GetId(), p.GetPayload()) == name.ID {
			out[name] = p.GetId()
		}
	}
	return out, nil
}
