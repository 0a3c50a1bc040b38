package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/bench/simulate/scheduler"
	"github.com/messagehub/messagehub/bench/simulate/steps"
	"github.com/messagehub/messagehub/cosmos/faulty"
)

// errCut reports that a connection is broken, or that one of its processes is dead.
var errCut = errors.New("the connection is broken")

// An httpTransport carries the requests of one process to Cosmos DB and to Blob Storage. The scheduler chooses when
// each request and each delayed response proceeds.
type httpTransport struct {
	sim  *simulation
	who  string
	dead atomic.Bool
	cut  chan struct{} // closed when dead is set
	last string        // name of the last request
}

func (sim *simulation) newHTTPTransport(who string) *httpTransport {
	l := &httpTransport{sim: sim, who: who, cut: make(chan struct{})}
	sim.env.httpTransports = append(sim.env.httpTransports, l)
	return l
}

// cutOff ends the transport: current and later requests fail.
func (l *httpTransport) cutOff() {
	if !l.dead.Swap(true) {
		close(l.cut)
	}
}

// An httpExchange is one request and its response.
type httpExchange struct {
	transport *httpTransport
	req       *http.Request
	next      policy.Transporter
	what      string
	detail    string
	query     string
	isCosmos  bool
	isRead    bool
	answer    chan httpResult // receives one value
}

type httpResult struct {
	resp *http.Response
	err  error
}

// Do implements policy.Transporter.
func (l *httpTransport) Do(req *http.Request) (*http.Response, error) {
	if l.dead.Load() {
		return nil, errCut
	}
	x := &httpExchange{transport: l, req: req, answer: make(chan httpResult, 1)}
	if l.sim.isBlob(req) {
		x.next, x.what = l.sim.env.blobs.Transport(), blobRequestName(req)
		x.isRead = req.Method == http.MethodGet || req.Method == http.MethodHead
		if err := bufferBody(req); err != nil {
			return nil, err
		}
	} else {
		if err := containers.Check(req); err != nil {
			l.sim.Fail(fmt.Errorf("%s makes a request: %w", l.who, err))
			return nil, err
		}
		name := steps.NameOf(req)
		x.next, x.what, x.isCosmos = l.sim.env.engine.Transport(), string(name), name != steps.Other
		x.isRead = !name.IsWrite()
		x.query = queryText(req)
	}
	x.detail = req.URL.Path + req.Header.Get("x-ms-documentdb-partitionkey")
	t := &scheduler.Turn{Who: l.who, What: x.what, Detail: x.detail, IsFrequent: !x.isCosmos && !l.sim.plan.blobsFailOften, Proceed: x.carryOut, Faults: x.possibleFaults, IsRare: x.isRareRequest}
	l.sim.Enqueue(t)
	select {
	case a := <-x.answer:
		return a.resp, a.err
	case <-l.cut:
		return nil, errCut
	case <-req.Context().Done():
		// The account may still execute the request, but the sender does not learn the outcome.
		return nil, req.Context().Err()
	case <-l.sim.ctx.Done(): // some requests of Azure's clients have no deadline
		return nil, errCut
	}
}

// carryOut sends the request to the account, and describes the outcome.
func (x *httpExchange) carryOut() string { return x.carryOutWith(faulty.None) }

func (x *httpExchange) carryOutWith(f faulty.Fault) string {
	stale := x.transport.sim.drawStaleness(x)
	x.transport.sim.env.staleCommits.Store(int64(stale))
	x.transport.sim.faults.requestCounts[x.requestKind()]++
	x.transport.last = x.what + x.query
	// The account executes the request even if the sender has died since.
	if x.isThrottled() && f == faulty.None {
		f = faulty.Throttled
	}
	if x.isCosmos && x.transport.sim.plan.hasHotPartition {
		x.transport.sim.faults.lastPartition = x.partitionName()
	}
	status := 0
	if time.Now().Before(x.transport.sim.faults.refusedUntil) && !x.transport.sim.FaultFree {
		x.deliverAnswer(httpResult{resp: refusedResponse(x.req)}) //nolint:bodyclose // the receiver of the answer closes it
		return "refused"
	}
	resp, err := f.Do(doerFunc(func(req *http.Request) (*http.Response, error) { //nolint:bodyclose // the receiver of the answer closes it
		resp, err := x.next.Do(req)
		if err == nil {
			resp, status = x.replaceHalfRead(resp), resp.StatusCode
		}
		return resp, err
	}), x.req.WithContext(context.WithoutCancel(x.req.Context())))
	x.transport.sim.env.staleCommits.Store(0)
	if errors.Is(err, faulty.ErrLost) {
		err = x.transport.sim.connectionError(f)
	}
	if err == nil && f == faulty.Truncated && x.transport.sim.plan.hasSocketErrors {
		resp.Body = brokenBody{resp.Body, x.transport.sim.connectionError(f)}
	}
	outcome := "no answer"
	if err == nil && f == faulty.Throttled {
		x.transport.sim.setRetryAfter(resp)
	}
	if err == nil {
		outcome = fmt.Sprint(resp.StatusCode)
	}
	if x.isCosmos && status > 0 {
		x.transport.sim.work.coverObserver.observeRequest(x, status, f)
	}
	if stale > 0 {
		outcome += x.transport.sim.AddNumber(fmt.Sprintf(", %d old", stale))
	}
	a := httpResult{resp, err}
	if x.req.Context().Err() != nil {
		x.transport.sim.MarkReached("a request was carried out after its sender had given up")
	}
	if slow := x.transport.sim.drawDelay(); slow > 0 {
		x.transport.sim.Enqueue(&scheduler.Turn{Who: x.transport.who, What: x.what + ": its answer", Detail: x.detail, NotBefore: time.Now().Add(slow), Proceed: func() string { return x.deliverAnswer(a) }})
		return outcome + x.transport.sim.AddNumber(", on its way for "+slow.String())
	}
	x.deliverAnswer(a)
	return outcome
}

// isThrottled reports whether Cosmos DB throttles the partition of the request now.
func (x *httpExchange) isThrottled() bool {
	sim := x.transport.sim
	return x.isCosmos && !sim.FaultFree && time.Now().Before(sim.faults.throttledUntil) && (sim.faults.throttledPartition == "" || sim.faults.throttledPartition == x.partitionName())
}

// partitionName returns the logical partition of the request.
func (x *httpExchange) partitionName() string {
	container, _ := containers.NameOf(x.req)
	return container + " " + x.req.Header.Get("x-ms-documentdb-partitionkey")
}

// connectionError returns the error of a broken connection. Depending on the plan, the error has no details, as with an
// HTTP/2 stream, or it is a socket error. Whether Azure's client retries depends on the kind of socket error.
func (sim *simulation) connectionError(f faulty.Fault) error {
	switch {
	case !sim.plan.hasSocketErrors:
		return faulty.ErrLost
	case f == faulty.RequestLost:
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case sim.FaultRNG.IntN(2) == 0:
		return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ETIMEDOUT}
	default:
		return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
}

// A brokenBody is a response body that ends early with an error.
type brokenBody struct {
	io.ReadCloser
	err error
}

func (b brokenBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = b.err
	}
	return n, err
}

// setRetryAfter sets the retry delay in a throttled response as the account does. The delay is mostly short, sometimes
// far too long, and sometimes missing.
func (sim *simulation) setRetryAfter(resp *http.Response) {
	const header = "x-ms-retry-after-ms"
	sim.faults.throttledCount++
	switch sim.faults.throttledCount % 16 {
	case 3, 7:
		resp.Header.Set(header, "500")
	case 11:
		resp.Header.Set(header, "5000")
	case 13:
		resp.Header.Set(header, "60000")
	case 15:
		resp.Header.Del(header)
	}
}

func (x *httpExchange) deliverAnswer(a httpResult) string {
	if x.transport.dead.Load() {
		if a.err == nil {
			_ = a.resp.Body.Close()
		}
		a = httpResult{nil, errCut}
	}
	x.answer <- a
	return "arrived"
}

// requestKind returns the name of the request and of the previous request of the same process. Rare kinds have a
// different fault rate.
func (x *httpExchange) requestKind() string { return x.transport.last + " → " + x.what + x.query }

// isRareRequest reports whether fewer than two requests of this kind have occurred. Without a higher fault rate,
// failures of rare requests would hardly be tested.
func (x *httpExchange) isRareRequest() bool {
	const few = 2
	return x.transport.sim.faults.requestCounts[x.requestKind()] < few
}

// queryText returns the text of a query, or "" if the request is not a query.
func queryText(req *http.Request) string {
	if !steps.IsQuery(req) {
		return ""
	}
	body, err := io.ReadAll(req.Body)
	req.Body = io.NopCloser(bytes.NewReader(body))
	var q struct{ Query string }
	if err != nil || json.Unmarshal(body, &q) != nil {
		return ""
	}
	return " " + q.Query
}

// refusedResponse returns the response of an account to an invalid key, or to a key without the required right.
func refusedResponse(req *http.Request) *http.Response {
	const body = `{"code":"Forbidden","message":"the key is none, or not for this"}`
	status := http.StatusForbidden
	if req.Method == http.MethodPost {
		status = http.StatusUnauthorized
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}, "X-Ms-Error-Code": {"AuthorizationFailure"}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

type doerFunc func(*http.Request) (*http.Response, error)

func (d doerFunc) Do(req *http.Request) (*http.Response, error) { return d(req) }

// possibleFaults returns the faults that the scheduler may inject into the request.
func (x *httpExchange) possibleFaults() []scheduler.Fault {
	var all []scheduler.Fault
	add := func(name string, f faulty.Fault) {
		all = append(all, scheduler.Fault{Name: name, Inject: func() string { return x.carryOutWith(f) }})
	}
	for _, f := range append(faulty.CommonFaults(), faulty.RareFaults()...) {
		if f != faulty.ForeignPrecondition && (x.isCosmos || f != faulty.RetryWith && f != faulty.Gone) {
			add(f.String(), f)
		}
	}
	if x.isCosmos {
		all = append(all, scheduler.Fault{Name: "502 of somebody in between", Inject: x.answerBadGateway})
	}
	if name := steps.Name(x.what); name == steps.Point || name == steps.Repoint {
		add(faulty.ForeignPrecondition.String(), faulty.ForeignPrecondition) // status 412, although these writes have no precondition
	}
	if x.isCosmos && x.isRead {
		add(faulty.SessionBehind.String(), faulty.SessionBehind)
	} else if x.isCosmos {
		add(faulty.Moving.String(), faulty.Moving)
	}
	all = append(all, scheduler.Fault{Name: "lost in the net", Inject: x.loseRequest})
	if !x.isRead {
		all = append(all, scheduler.Fault{Name: "late", Inject: x.delayRequest})
	}
	return all
}

// answerBadGateway responds with status 502, as a proxy in front of the account does.
func (x *httpExchange) answerBadGateway() string {
	const page = "<html>bad gateway</html>"
	resp := refusedResponse(x.req) //nolint:bodyclose // the receiver of the answer closes it
	resp.StatusCode, resp.Status = http.StatusBadGateway, http.StatusText(http.StatusBadGateway)
	resp.Header, resp.Body, resp.ContentLength = http.Header{"Content-Type": {"text/html"}}, io.NopCloser(strings.NewReader(page)), int64(len(page))
	x.deliverAnswer(httpResult{resp: resp})
	return "502"
}

// loseRequest drops the request. A sender without a deadline gets a connection error after two minutes.
func (x *httpExchange) loseRequest() string {
	const keepAlive = 2 * time.Minute
	x.transport.sim.Enqueue(&scheduler.Turn{Who: x.transport.who, What: x.what + ": its connection", Detail: x.detail, NotBefore: time.Now().Add(keepAlive), Proceed: func() string {
		return x.deliverAnswer(httpResult{nil, x.transport.sim.connectionError(faulty.ReplyLostAfter)})
	}})
	return "request lost"
}

// delayRequest sends the request to the account much later, when the sender may have given up.
func (x *httpExchange) delayRequest() string {
	d := time.Duration(5+x.transport.sim.FaultRNG.IntN(60)) * time.Second
	x.transport.sim.Enqueue(&scheduler.Turn{Who: x.transport.who, What: x.what + ", late", Detail: x.detail, NotBefore: time.Now().Add(d), Proceed: x.carryOut})
	return "delayed by " + d.String()
}

// blobRequestName returns the name of a request to Blob Storage.
func blobRequestName(req *http.Request) string {
	q := req.URL.Query()
	parts := []string{strings.ToLower(req.Method), "blob"}
	for _, key := range [...]string{"comp", "restype"} {
		if v := q.Get(key); v != "" {
			parts = append(parts, v)
		}
	}
	return strings.Join(parts, " ")
}

// bufferBody reads the whole body of a request, so that it can be sent later.
func bufferBody(req *http.Request) error {
	if req.Body == nil {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err == nil {
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	return err
}
