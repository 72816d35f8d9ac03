package extproc

import (
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// ends is how many bytes are kept of each end of an answer.
const ends = 16 << 10

// responseHeaders notes who answers.
func (x *exchange) responseHeaders(h *pb.HttpHeaders, meta *corev3.Metadata) []*pb.ProcessingResponse {
	code := 0
	for _, v := range h.GetHeaders().GetHeaders() {
		if v.GetKey() == ":status" {
			code, _ = strconv.Atoi(textOf(v))
		}
	}
	again := x.began
	x.began = true
	if f := x.decision.Served; f != nil && !again {
		f(meta.GetFilterMetadata()[lbNamespace].GetFields()[servedKey].GetStringValue())
	}
	r := &pb.HeadersResponse{}
	if f := x.decision.Answer; f != nil && !again {
		if m := headers(f(code)); len(m.SetHeaders)+len(m.RemoveHeaders) > 0 {
			r.Response = &pb.CommonResponse{HeaderMutation: m}
		}
	}
	if h.GetEndOfStream() {
		x.end(nil)
	}
	return one(&pb.ProcessingResponse{Response: &pb.ProcessingResponse_ResponseHeaders{ResponseHeaders: r}})
}

// responseBody gives a piece of the answer back as it is.
func (x *exchange) responseBody(b *pb.HttpBody) []*pb.ProcessingResponse {
	x.keep(b.GetBody())
	if b.GetEndOfStream() {
		x.end(nil)
	}
	r := &pb.BodyResponse{}
	if x.duplexResponse {
		r.Response = &pb.CommonResponse{BodyMutation: streamed(b.GetBody(), b.GetEndOfStream())}
	}
	return one(&pb.ProcessingResponse{Response: &pb.ProcessingResponse_ResponseBody{ResponseBody: r}})
}

func (x *exchange) keep(p []byte) {
	if room := ends - len(x.head); room > 0 {
		n := min(room, len(p))
		x.head = append(x.head, p[:n]...)
		p = p[n:]
	}
	x.tail = append(x.tail, p...)
	if over := len(x.tail) - ends; over > ends || len(p) > ends {
		x.tail = append(x.tail[:0], x.tail[over:]...)
	}
}

// end reports that the answer has ended, once.
func (x *exchange) end(err error) {
	if x.ended {
		return
	}
	x.ended = true
	if x.decision.Ended == nil {
		return
	}
	if over := len(x.tail) - ends; over > 0 {
		x.tail = x.tail[over:]
	}
	if err != nil && x.began && len(x.head) == 0 {
		err = ErrNoBody
	}
	x.decision.Ended(x.head, x.tail, err)
}
