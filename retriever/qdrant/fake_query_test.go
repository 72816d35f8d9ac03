package qdrant_test

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	api "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/ragpilot/ragpilot/internal/testkit"
)

func (f fakePoints) Query(_ context.Context, r *api.QueryPoints) (*api.QueryResponse, error) {
	return within(f.fake, r, func(c *fakeCollection) (*api.QueryResponse, error) {
		f.queries = append(f.queries, proto.CloneOf(r))
		find := c.fuse
		if len(r.GetPrefetch()) == 0 {
			find = func(r *api.QueryPoints) ([]fakeScore, error) {
				return c.nearest(r.GetQuery().GetNearest(), r.GetUsing(), r.GetFilter())
			}
		}
		scores, err := find(r)
		if err != nil {
			return nil, err
		}
		return &api.QueryResponse{Result: testkit.Map(scores[:min(len(scores), int(r.GetLimit()))], func(s fakeScore) *api.ScoredPoint {
			return &api.ScoredPoint{
				Id: pointOf(s.point.id), Score: float32(s.score), Payload: chosen(s.point.payload, r.GetWithPayload()),
			}
		})}, nil
	})
}

type fakeScore struct {
	point *fakePoint
	score float64
}

func best(scores []fakeScore) []fakeScore {
	slices.SortStableFunc(scores, func(a, b fakeScore) int { return cmp.Compare(b.score, a.score) })
	return scores
}

func chosen(payload map[string]*api.Value, w *api.WithPayloadSelector) map[string]*api.Value {
	if w.GetEnable() {
		return payload
	}
	out := map[string]*api.Value{}
	for _, key := range w.GetInclude().GetFields() {
		if v, ok := payload[key]; ok {
			out[key] = v
		}
	}
	return out
}

// nearest compares with all points that fit, the latest first.
func (c *fakeCollection) nearest(q *api.VectorInput, using string, filter *api.Filter) ([]fakeScore, error) {
	var scores []fakeScore
	sparse := sparseMap(q.GetSparse())
	if q.GetSparse() == nil {
		if err := c.fits(using, q.GetDense().GetData()); err != nil {
			return nil, err
		}
	}
	for _, p := range slices.Backward(c.points) {
		if !matches(filter, p) {
			continue
		}
		score := 0.0
		if q.GetSparse() != nil {
			score = c.words(sparse, p.sparse[using], using)
			if score == 0 {
				continue
			}
		} else {
			score = cosine(q.GetDense().GetData(), p.dense[using])
		}
		scores = append(scores, fakeScore{p, float64(float32(score))})
	}
	return best(scores), nil
}

func sparseMap(s interface {
	GetIndices() []uint32
	GetValues() []float32
},
) map[uint32]float32 {
	out := map[uint32]float32{}
	for i, index := range s.GetIndices() {
		out[index] = s.GetValues()[i]
	}
	return out
}

// words is the dot product, each word weighted by how rare it is.
func (c *fakeCollection) words(query, document map[uint32]float32, using string) (sum float64) {
	for index, weight := range query {
		value, ok := document[index]
		if !ok {
			continue
		}
		holding := 0
		for _, p := range c.points {
			if _, ok := p.sparse[using][index]; ok {
				holding++
			}
		}
		n := float64(holding)
		sum += float64(weight*value) * math.Log(1+(float64(len(c.points))-n+0.5)/(n+0.5))
	}
	return float64(float32(sum)) // the order of the summands must not show
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i] * b[i])
		aa += float64(a[i] * a[i])
		bb += float64(b[i] * b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

func (c *fakeCollection) fuse(r *api.QueryPoints) ([]fakeScore, error) {
	sums := map[*fakePoint]float64{}
	for _, p := range r.GetPrefetch() {
		scores, err := c.nearest(p.GetQuery().GetNearest(), p.GetUsing(), p.GetFilter())
		if err != nil {
			return nil, err
		}
		scores = scores[:min(len(scores), int(p.GetLimit()))]
		mean, deviation := spread(scores)
		for rank, s := range scores {
			if r.GetQuery().GetFusion() == api.Fusion_RRF {
				sums[s.point] += 1 / float64(rank+2)
			} else {
				sums[s.point] += scaled(s.score, mean, deviation)
			}
		}
	}
	var out []fakeScore
	for _, p := range slices.Backward(c.points) {
		if sum, found := sums[p]; found {
			out = append(out, fakeScore{p, float64(float32(sum))})
		}
	}
	if len(sums) > 0 && r.GetQuery().GetFusion() > api.Fusion_DBSF {
		return nil, status.Error(codes.InvalidArgument, "unknown fusion")
	}
	return best(out), nil
}

func spread(scores []fakeScore) (mean, deviation float64) {
	for _, s := range scores {
		mean += s.score / float64(len(scores))
	}
	for _, s := range scores {
		deviation += (s.score - mean) * (s.score - mean)
	}
	return mean, math.Sqrt(deviation / max(1, float64(len(scores)-1)))
}

// scaled maps mean ± 3 deviations to 0…1.
func scaled(score, mean, deviation float64) float64 {
	if deviation < 1e-9 {
		return 0.5
	}
	return (score - mean + 3*deviation) / (6 * deviation)
}

func matches(f *api.Filter, p *fakePoint) bool {
	for _, c := range f.GetMust() {
		if !holds(c, p) {
			return false
		}
	}
	for _, c := range f.GetMustNot() {
		if holds(c, p) {
			return false
		}
	}
	for _, c := range f.GetShould() {
		if holds(c, p) {
			return true
		}
	}
	return len(f.GetShould()) == 0
}

func holds(c *api.Condition, p *fakePoint) bool {
	if c.GetFilter() != nil {
		return matches(c.GetFilter(), p)
	}
	if c.GetHasId() != nil {
		return slices.ContainsFunc(c.GetHasId().GetHasId(), func(id *api.PointId) bool { return nameOf(id) == p.id })
	}
	for _, v := range values(p.payload, c.GetField().GetKey()) {
		if fieldHolds(c.GetField(), v) {
			return true
		}
	}
	return false
}

func fieldHolds(f *api.FieldCondition, v *api.Value) bool {
	if r := f.GetRange(); r != nil {
		n, isNumber := v.GetDoubleValue(), false
		switch v.GetKind().(type) {
		case *api.Value_IntegerValue:
			n, isNumber = float64(v.GetIntegerValue()), true
		case *api.Value_DoubleValue:
			isNumber = true
		}
		return isNumber && (r.Gte == nil || n >= *r.Gte) && (r.Lte == nil || n <= *r.Lte)
	}
	m := f.GetMatch()
	switch k := v.GetKind().(type) {
	case *api.Value_StringValue:
		one, isOne := m.GetMatchValue().(*api.Match_Keyword)
		return isOne && one.Keyword == k.StringValue || slices.Contains(m.GetKeywords().GetStrings(), k.StringValue)
	case *api.Value_IntegerValue:
		return slices.Contains(m.GetIntegers().GetIntegers(), k.IntegerValue)
	case *api.Value_BoolValue:
		_, isBool := m.GetMatchValue().(*api.Match_Boolean)
		return isBool && m.GetBoolean() == k.BoolValue
	}
	return false
}

// values returns what is at a path of the payload, the elements of a list one by one.
func values(payload map[string]*api.Value, path string) []*api.Value {
	head, rest, more := strings.Cut(path, ".")
	if strings.HasPrefix(path, `"`) {
		quoted, after, _ := strings.Cut(path[1:], `"`)
		head, rest, more = quoted, strings.TrimPrefix(after, "."), after != ""
	}
	v := payload[head]
	if more {
		return values(v.GetStructValue().GetFields(), rest)
	}
	if list := v.GetListValue(); list != nil {
		return list.GetValues()
	}
	return []*api.Value{v}
}
