package wire

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/physics"
)

// maxBody is the maximum size of a request body, in bytes.
const maxBody = 2 << 20

// A Server serves the requests to an account. It is safe for concurrent use.
type Server struct {
	engine      *engine.Engine
	key         []byte
	consistency string
	regions     regions
	charged     atomic.Int64 // total charge of all data requests, as an engine.Charge
	requests    atomic.Int64
	throttle    *physics.Throttle // nil disables throttling
	delayer     *physics.Delayer  // nil disables delays
	collides    func() bool       // nil disables simulated conflicts
}

// Options configure a Server.
type Options struct {
	Key         string // key of the account, in base64
	Consistency string // default consistency level of the account
	Throttle    *physics.Throttle
	Delayer     *physics.Delayer
	Collides    func() bool

	// WriteRegions and ReadRegions are the names of regions in the account document. By default, there is one region
	// for reads and writes.
	WriteRegions, ReadRegions []string
}

// New returns a Server for e.
func New(e *engine.Engine, o Options) (*Server, error) {
	consistency := o.Consistency
	secret, err := base64.StdEncoding.DecodeString(o.Key)
	if err != nil || len(secret) == 0 {
		return nil, fmt.Errorf("the account key is not base64: %w", err)
	}
	if _, ok := consistencyRank[consistency]; !ok {
		return nil, fmt.Errorf("consistency level %q is unknown; want Strong, BoundedStaleness, Session, ConsistentPrefix or Eventual", consistency)
	}
	regions := listRegions(&o)
	return &Server{engine: e, key: secret, consistency: consistency, regions: regions, throttle: o.Throttle, delayer: o.Delayer, collides: o.Collides}, nil
}

// RequestUnits returns the total charge of all data requests.
func (s *Server) RequestUnits() float64 { return engine.Charge(s.charged.Load()).RequestUnits() }

// Requests returns the number of data requests.
func (s *Server) Requests() int64 { return s.requests.Load() }

// A Response is the response to a request. Its body must not be changed.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Handler returns a handler that serves the account with the options d.
func (s *Server) Handler(d EndpointOptions) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := s.Serve(r, d) //nolint:contextcheck // the request carries it
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Status)
		if r.Method != http.MethodHead {
			_, _ = w.Write(answer.Body) // an error only means that the client has disconnected
		}
	})
}

// A serverRequest is a request that is being processed, with its parsed parts.
type serverRequest struct {
	*http.Request
	endpoint EndpointOptions
	segments []string         // segments of the path, unescaped
	budgets  []physics.Budget // budgets to which the request is charged
	advice   string           // query plan to add to the body of a refusal
	answer   http.Header
}

// Serve returns the response to a request at the endpoint d.
func (s *Server) Serve(r *http.Request, d EndpointOptions) Response {
	req := &serverRequest{Request: r, endpoint: d, answer: http.Header{
		"Content-Type":        {"application/json"},
		"X-Ms-Activity-Id":    {activityID(r)},
		"X-Ms-Gatewayversion": {"version=embedded"},
	}}
	answer, err := s.routeRequest(req)
	if err != nil {
		answer = errorResponse(req, err)
	}
	answer.Header = req.answer
	return answer
}

func (s *Server) routeRequest(r *serverRequest) (Response, error) {
	var err error
	if r.segments, err = splitPath(r.URL); err != nil {
		return Response{}, err
	}
	if err := r.checkAddress(); err != nil {
		return Response{}, err
	}
	if err := s.checkSignature(r); err != nil {
		return Response{}, err
	}
	if err := s.checkHeaders(r); err != nil {
		return Response{}, err
	}
	if err := s.resolveNames(r); err != nil {
		return Response{}, err
	}
	answer, err := s.serveResource(r)
	s.nameOwner(r)
	return answer, err
}

func (s *Server) serveResource(r *serverRequest) (Response, error) {
	p := r.segments
	at := func(i int, word string) bool { return len(p) > i && p[i] == word }
	switch n := len(p); {
	case n == 0:
		return s.serveAccount(r)
	case n == 1 && at(0, "dbs"):
		return s.serveDatabases(r)
	case n == 2 && at(0, "dbs"):
		return s.serveDatabase(r)
	case n == 3 && at(0, "dbs") && at(2, "colls"):
		return s.serveContainers(r)
	case n == 4 && at(0, "dbs") && at(2, "colls"):
		return s.serveContainer(r)
	case n == 5 && at(0, "dbs") && at(2, "colls") && at(4, "pkranges"):
		return s.serveRanges(r)
	case (n == 5 || n == 6) && at(0, "dbs") && at(2, "colls") && at(4, "docs"):
		return s.serveData(r)
	case n == 1 && at(0, "offers"):
		return s.serveOffers(r)
	case n == 2 && at(0, "offers"):
		return s.serveOffer(r)
	}
	return Response{}, unsupportedError("resource %s", r.URL.Path)
}

// splitPath returns the segments of a path. It unescapes each separately, because an id may contain an escaped slash.
func splitPath(u *url.URL) ([]string, error) {
	path := strings.Trim(u.EscapedPath(), "/")
	if path == "" {
		return nil, nil
	}
	parts := strings.Split(path, "/")
	for i, part := range parts {
		text, err := url.PathUnescape(part)
		if err != nil || text == "" {
			return nil, badRequest("the path %s is not valid", u.EscapedPath())
		}
		parts[i] = text
	}
	return parts, nil
}

// readBody reads the body of the request.
func (r *serverRequest) readBody() ([]byte, error) {
	if r.Body == nil {
		return nil, badRequest("the request has no body")
	}
	if r.ContentLength > maxBody {
		return nil, tooLargeError(r.ContentLength)
	}
	if n := r.ContentLength; n > 0 {
		b := make([]byte, n)
		if _, err := io.ReadFull(r.Body, b); err != nil {
			return nil, badRequest("the body ends before its length: %v", err)
		}
		return b, nil
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, badRequest("the body cannot be read: %v", err)
	}
	if len(b) > maxBody {
		return nil, tooLargeError(int64(len(b)))
	}
	return b, nil
}

func tooLargeError(n int64) error {
	return &engine.Error{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the request has %d bytes; at most %d are allowed", n, maxBody)}
}
