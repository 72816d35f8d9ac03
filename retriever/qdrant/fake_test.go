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

	"github.com/ragpilot/ragpilot/internal/testkit"
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
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	client, err := api.NewClient(&api.Config{
		Host: "passthrough:///fake", PoolSize: 1, SkipCompatibilityCheck: true, KeepAliveTime: -1,
		GrpcOptions: []grpc.DialOption{
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64 << 20)),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }),
		},
	})
	return f, testkit.Opened[*api.Client](t)(client, err)
}

// within answers a request from its collection, one request at a time.
func within[T any](f *fake, r interface{ GetCollectionName() string }, answer func(*fakeCollection) (T, error)) (out T, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.collections[r.GetCollectionName()]
	if !ok {
		return out, status.Errorf(codes.NotFound, "no collection %q", r.GetCollectionName())
	}
	return answer(c)
}

var updated = &api.PointsOperationResponse{Result: &api.UpdateResult{}}

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
	return within(f.fake, r, func(c *fakeCollection) (*api.PointsOperationResponse, error) {
		for _, p := range r.GetPoints() {
			point, err := c.point(p)
			if err != nil {
				return nil, err
			}
			c.remove(point.id)
			c.points = append(c.points, point)
		}
		return updated, nil
	})
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
	return within(f.fake, r, func(c *fakeCollection) (*api.PointsOperationResponse, error) {
		for _, id := range r.GetPoints().GetPoints().GetIds() {
			c.remove(nameOf(id))
		}
		return updated, nil
	})
}

func (f fakePoints) Get(_ context.Context, r *api.GetPoints) (*api.GetResponse, error) {
	return within(f.fake, r, func(c *fakeCollection) (*api.GetResponse, error) {
		var out []*api.RetrievedPoint
		for _, p := range c.points {
			for _, id := range r.GetIds() {
				if nameOf(id) == p.id {
					out = append(out, &api.RetrievedPoint{Id: pointOf(p.id), Payload: p.payload})
				}
			}
		}
		return &api.GetResponse{Result: out}, nil
	})
}

func (f fakePoints) Count(_ context.Context, r *api.CountPoints) (*api.CountResponse, error) {
	return within(f.fake, r, func(c *fakeCollection) (*api.CountResponse, error) {
		return &api.CountResponse{Result: &api.CountResult{Count: uint64(len(c.points))}}, nil
	})
}

func (f fakePoints) CreateFieldIndex(_ context.Context, r *api.CreateFieldIndexCollection) (*api.PointsOperationResponse, error) {
	return within(f.fake, r, func(c *fakeCollection) (*api.PointsOperationResponse, error) {
		c.indexes = append(c.indexes, r)
		return updated, nil
	})
}

func (f fakeCollections) Get(_ context.Context, r *api.GetCollectionInfoRequest) (*api.GetCollectionInfoResponse, error) {
	return within(f.fake, r, func(c *fakeCollection) (*api.GetCollectionInfoResponse, error) {
		return &api.GetCollectionInfoResponse{Result: &api.CollectionInfo{Config: &api.CollectionConfig{
			Params: &api.CollectionParams{VectorsConfig: c.config.GetVectorsConfig()},
		}}}, nil
	})
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
