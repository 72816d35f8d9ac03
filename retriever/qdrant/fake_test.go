package qdrant_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
)

// fake is a fake of a Qdrant server: it answers what this package asks, by comparing with every point. Ties it gives in
// the order in which points came, the latest first.
type fake struct {
	mu          sync.Mutex
	collections map[string]*fakeCollection // guarded by mu
	queries     []*api.QueryPoints         // guarded by mu
}

// The two services have methods of the same names.
type (
	fakePoints struct {
		api.UnimplementedPointsServer
		*fake
	}
	fakeCollections struct {
		api.UnimplementedCollectionsServer
		*fake
	}
)

type fakeCollection struct {
	config  *api.CreateCollection
	indexes []*api.CreateFieldIndexCollection
	points  []*fakePoint
}

type fakePoint struct {
	id      string
	payload map[string]*api.Value
	dense   map[string][]float32
	sparse  map[string]map[uint32]float32
}

// newFake starts the fake and returns a client of it. The interceptor, if there is one, sees every call first.
func newFake(t testing.TB, intercept grpc.UnaryServerInterceptor) (*fake, *api.Client) {
	t.Helper()
	f := &fake{collections: map[string]*fakeCollection{}}
	var opts []grpc.ServerOption
	if intercept != nil {
		opts = append(opts, grpc.UnaryInterceptor(intercept))
	}
	server := grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(64<<20))...)
	api.RegisterPointsServer(server, fakePoints{fake: f})
	api.RegisterCollectionsServer(server, fakeCollections{fake: f})
	pipe := bufconn.Listen(1 << 20)
	served := make(chan error, 1)
	go func() { served <- server.Serve(pipe) }()
	client, err := api.NewClient(&api.Config{
		Host: "passthrough:///fake", PoolSize: 1, SkipCompatibilityCheck: true, KeepAliveTime: -1,
		GrpcOptions: []grpc.DialOption{
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64 << 20)),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return f, client
}

func (f *fake) collection(name string) (*fakeCollection, error) {
	c, ok := f.collections[name]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "no collection %q", name)
	}
	return c, nil
}

// lastQuery returns a copy of the latest query.
func (f *fake) lastQuery() *api.QueryPoints {
	f.mu.Lock()
	defer f.mu.Unlock()
	return proto.CloneOf(f.queries[len(f.queries)-1])
}

func (f fakeCollections) Create(_ context.Context, r *api.CreateCollection) (*api.CollectionOperationResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, exists := f.collections[r.GetCollectionName()]; exists {
		return nil, status.Error(codes.AlreadyExists, "it exists")
	}
	f.collections[r.GetCollectionName()] = &fakeCollection{config: r}
	return &api.CollectionOperationResponse{Result: true}, nil
}

func (f fakeCollections) CollectionExists(_ context.Context, r *api.CollectionExistsRequest) (*api.CollectionExistsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, exists := f.collections[r.GetCollectionName()]
	return &api.CollectionExistsResponse{Result: &api.CollectionExists{Exists: exists}}, nil
}

func (f fakePoints) Upsert(_ context.Context, r *api.UpsertPoints) (*api.PointsOperationResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.collection(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	for _, p := range r.GetPoints() {
		point, err := c.point(p)
		if err != nil {
			return nil, err
		}
		c.remove(point.id)
		c.points = append(c.points, point)
	}
	return &api.PointsOperationResponse{Result: &api.UpdateResult{}}, nil
}

func (c *fakeCollection) point(p *api.PointStruct) (*fakePoint, error) {
	out := &fakePoint{
		id: nameOf(p.GetId()), payload: p.GetPayload(),
		dense: map[string][]float32{}, sparse: map[string]map[uint32]float32{},
	}
	named := p.GetVectors().GetVectors().GetVectors()
	if v := p.GetVectors().GetVector(); v != nil {
		named = map[string]*api.Vector{"": v}
	}
	for name, v := range named {
		if s := v.GetSparse(); s != nil {
			out.sparse[name] = sparseMap(s)
			continue
		}
		out.dense[name] = v.GetDense().GetData()
		if err := c.fits(name, out.dense[name]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *fakeCollection) fits(name string, v []float32) error {
	params := c.config.GetVectorsConfig().GetParams()
	if name != "" {
		params = c.config.GetVectorsConfig().GetParamsMap().GetMap()[name]
	}
	if params.GetSize() != uint64(len(v)) {
		return status.Errorf(codes.InvalidArgument, "vector %q has %d numbers, want %d", name, len(v), params.GetSize())
	}
	return nil
}

func (c *fakeCollection) remove(id string) {
	for i, p := range c.points {
		if p.id == id {
			c.points = append(c.points[:i:i], c.points[i+1:]...)
			return
		}
	}
}

func (f fakePoints) Delete(_ context.Context, r *api.DeletePoints) (*api.PointsOperationResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.collection(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	for _, id := range r.GetPoints().GetPoints().GetIds() {
		c.remove(nameOf(id))
	}
	return &api.PointsOperationResponse{Result: &api.UpdateResult{}}, nil
}

func (f fakePoints) Get(_ context.Context, r *api.GetPoints) (*api.GetResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.collection(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	var out []*api.RetrievedPoint
	for _, p := range c.points {
		for _, id := range r.GetIds() {
			if nameOf(id) == p.id {
				out = append(out, &api.RetrievedPoint{Id: pointOf(p.id), Payload: p.payload})
			}
		}
	}
	return &api.GetResponse{Result: out}, nil
}

func (f fakePoints) Count(_ context.Context, r *api.CountPoints) (*api.CountResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.collection(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	return &api.CountResponse{Result: &api.CountResult{Count: uint64(len(c.points))}}, nil
}

func (f fakePoints) CreateFieldIndex(_ context.Context, r *api.CreateFieldIndexCollection) (*api.PointsOperationResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.collection(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	c.indexes = append(c.indexes, r)
	return &api.PointsOperationResponse{Result: &api.UpdateResult{}}, nil
}

func (f fakeCollections) Get(_ context.Context, r *api.GetCollectionInfoRequest) (*api.GetCollectionInfoResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.collection(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	return &api.GetCollectionInfoResponse{Result: &api.CollectionInfo{Config: &api.CollectionConfig{
		Params: &api.CollectionParams{VectorsConfig: c.config.GetVectorsConfig()},
	}}}, nil
}

// nameOf returns a point's ID as text, and pointOf the ID of that text.
func nameOf(id *api.PointId) string {
	if u := id.GetUuid(); u != "" {
		return u
	}
	return strconv.FormatUint(id.GetNum(), 10)
}

func pointOf(name string) *api.PointId {
	if n, err := strconv.ParseUint(name, 10, 64); err == nil {
		return api.NewIDNum(n)
	}
	return api.NewIDUUID(name)
}
