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
	"github.com/messagehub/messagehub/bench/simulate/steps"
	"github.com/messagehub/messagehub/cosmos/faulty"
)

// errCut reports that a line carries nothing any more, because the process at its end
// is dead, or because the connection has broken.
var errCut = errors.New("the connection is broken")

// An httpLine carries the requests of one process to Cosmos and to the blobs. It
// holds each until the scheduler lets it through, and perhaps its answer as well.
type httpLine struct {
	w    *world
	who  string
	dead atomic.Bool
	gone chan struct{} // closed with dead
	last string        // what was carried last
}

func (w *world) newHTTPLine(who string) *httpLine {
	l := &httpLine{w: w, who: who, gone: make(chan struct{})}
	w.httpLines = append(w.httpLines, l)
	return l
}

// cut has the line carry nothing any more.
func (l *httpLine) cut() {
	if !l.dead.Swap(true) {
		close(l.gone)
	}
}

// An exchange is one request on its way.
type exchange struct {
	line     *httpLine
	req      *http.Request
	next     policy.Transporter
	what     string
	more     string
	query    string
	isCosmos bool
	isRead   bool
	answer   chan answered // holds one
}

type answered struct {
	resp *http.Response
	err  error
}

// Do implements policy.Transporter.
func (l *httpLine) Do(req *http.Request) (*http.Response, error) {
	if l.dead.Load() {
		return nil, errCut
	}
	x := &exchange{line: l, req: req, answer: make(chan answered, 1)}
	if l.w.isBlob(req) {
		x.next, x.what = l.w.blobs.Transport(), blobStep(req)
		x.isRead = req.Method == http.MethodGet || req.Method == http.MethodHead
		if err := buffered(req); err != nil {
			return nil, err
		}
	} else {
		if err := containers.Check(req); err != nil {
			l.w.fail(fmt.Errorf("%s makes a request: %w", l.who, err))
			return nil, err
		}
		name := steps.NameOf(req)
		x.next, x.what, x.isCosmos = l.w.engine.Transport(), string(name), name != steps.Other
		x.isRead = !name.IsWrite()
		x.query = queryOf(req)
	}
	x.more = req.URL.Path + req.Header.Get("x-ms-documentdb-partitionkey")
	t := &turn{who: l.who, what: x.what, more: x.more, many: !x.isCosmos && !l.w.plan.blobs, goes: x.goes, faults: x.faults, isRare: x.isRare}
	l.w.wait(t)
	select {
	case a := <-x.answer:
		return a.resp, a.err
	case <-l.gone:
		return nil, errCut
	case <-req.Context().Done():
		// It may be on its way: whoever sent it does not know, and does not learn it.
		return nil, req.Context().Err()
	case <-l.w.ctx.Done(): // what Microsoft's client asks behind everybody's back has no end of its own
		return nil, errCut
	}
}

// goes carries the request out, and answers now or later.
func (x *exchange) goes() string { return x.carried(faulty.None) }

func (x *exchange) carried(f faulty.Fault) string {
	stale := x.line.w.staleness(x)
	x.line.w.stale.Store(int64(stale))
	x.line.w.asked[x.kind()]++
	x.line.last = x.what + x.query
	// The request is on its way, whatever has become of whoever sent it.
	if x.isThrottled() && f == faulty.None {
		f = faulty.Throttled
	}
	if x.isCosmos && x.line.w.plan.hot {
		x.line.w.busy = x.partition()
	}
	status := 0
	if time.Now().Before(x.line.w.locked) && !x.line.w.calm {
		x.arrives(answered{resp: refused(x.req)}) //nolint:bodyclose // whoever asked does
		return "refused"
	}
	resp, err := f.Do(doer(func(req *http.Request) (*http.Response, error) { //nolint:bodyclose // whoever asked does
		resp, err := x.next.Do(req)
		if err == nil {
			resp, status = x.changes(resp), resp.StatusCode
		}
		return resp, err
	}), x.req.WithContext(context.WithoutCancel(x.req.Context())))
	x.line.w.stale.Store(0)
	if errors.Is(err, faulty.ErrLost) {
		err = x.line.w.broken(f)
	}
	if err == nil && f == faulty.Truncated && x.line.w.plan.sockets {
		resp.Body = brokenBody{resp.Body, x.line.w.broken(f)}
	}
	outcome := "no answer"
	if err == nil && f == faulty.Throttled {
		x.line.w.asksToWait(resp)
	}
	if err == nil {
		outcome = fmt.Sprint(resp.StatusCode)
	}
	if x.isCosmos && status > 0 {
		x.line.w.witness.saw(x, status, f)
	}
	if stale > 0 {
		outcome += fmt.Sprintf(", %d old", stale)
	}
	a := answered{resp, err}
	if x.req.Context().Err() != nil {
		x.line.w.reached("a request was carried out after its sender had given up")
	}
	if slow := x.line.w.slowness(); slow > 0 {
		x.line.w.wait(&turn{who: x.line.who, what: x.what + ": its answer", more: x.more, late: time.Now().Add(slow), goes: func() string { return x.arrives(a) }})
		return outcome + ", on its way for " + slow.String()
	}
	x.arrives(a)
	return outcome
}

// isThrottled reports whether a storm is about where the request goes.
func (x *exchange) isThrottled() bool {
	w := x.line.w
	return x.isCosmos && !w.calm && time.Now().Before(w.storm) && (w.hot == "" || w.hot == x.partition())
}

// partition names the logical partition that the request is about.
func (x *exchange) partition() string {
	container, _ := containers.NameOf(x.req)
	return container + " " + x.req.Header.Get("x-ms-documentdb-partitionkey")
}

// broken is the error of a connection that has broken: one that tells nothing, as that
// of an HTTP/2 stream, or one by which Microsoft's client decides whether to ask again.
func (w *world) broken(f faulty.Fault) error {
	switch {
	case !w.plan.sockets:
		return faulty.ErrLost
	case f == faulty.RequestLost:
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case w.mishaps.n(2) == 0:
		return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ETIMEDOUT}
	default:
		return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
}

// A brokenBody is an answer that breaks off with an error.
type brokenBody struct {
	io.ReadCloser
	with error
}

func (b brokenBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = b.with
	}
	return n, err
}

// asksToWait has an account that is short of request units say for how long to wait, as
// it does: mostly not long, now and then for longer than anybody can, or not at all.
func (w *world) asksToWait(resp *http.Response) {
	const header = "x-ms-retry-after-ms"
	w.throttled++
	switch w.throttled % 16 {
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

func (x *exchange) arrives(a answered) string {
	if x.line.dead.Load() {
		if a.err == nil {
			_ = a.resp.Body.Close()
		}
		a = answered{nil, errCut}
	}
	x.answer <- a
	return "arrived"
}

// kind tells what is asked from other things: what it is for, and what the same
// process has asked before.
func (x *exchange) kind() string { return x.line.last + " → " + x.what + x.query }

// isRare reports whether hardly anybody has asked that yet. What is done rarely is
// what nobody has seen fail.
func (x *exchange) isRare() bool {
	const few = 2
	return x.line.w.asked[x.kind()] < few
}

// queryOf returns the text of a query, "" of another request.
func queryOf(req *http.Request) string {
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

// refused is the answer of an account to a key that is no good, or not for this.
func refused(req *http.Request) *http.Response {
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

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(req *http.Request) (*http.Response, error) { return d(req) }

// faults are those that may befall the request.
func (x *exchange) faults() []fault {
	var all []fault
	add := func(name string, f faulty.Fault) {
		all = append(all, fault{name, func() string { return x.carried(f) }})
	}
	for _, f := range append(faulty.Faults(), faulty.More()...) {
		if f != faulty.ForeignPrecondition && (x.isCosmos || f != faulty.RetryWith && f != faulty.Gone) {
			add(f.String(), f)
		}
	}
	if x.isCosmos {
		all = append(all, fault{"502 of somebody in between", x.isMeddledWith})
	}
	if name := steps.Name(x.what); name == steps.Point || name == steps.Repoint {
		add(faulty.ForeignPrecondition.String(), faulty.ForeignPrecondition) // though these have none
	}
	if x.isCosmos && x.isRead {
		add(faulty.SessionBehind.String(), faulty.SessionBehind)
	} else if x.isCosmos {
		add(faulty.Moving.String(), faulty.Moving)
	}
	all = append(all, fault{"lost in the net", x.isLost})
	if !x.isRead {
		all = append(all, fault{"late", x.comesLate})
	}
	return all
}

// isMeddledWith has a request be answered by what stands before the account, in words
// that are not the account's.
func (x *exchange) isMeddledWith() string {
	const page = "<html>bad gateway</html>"
	resp := refused(x.req) //nolint:bodyclose // whoever asked does
	resp.StatusCode, resp.Status = http.StatusBadGateway, http.StatusText(http.StatusBadGateway)
	resp.Header, resp.Body, resp.ContentLength = http.Header{"Content-Type": {"text/html"}}, io.NopCloser(strings.NewReader(page)), int64(len(page))
	x.arrives(answered{resp: resp})
	return "502"
}

// isLost has a request never arrive. Whoever waits for its answer without an end of
// its own learns in a while that the connection is dead.
func (x *exchange) isLost() string {
	const keepAlive = 2 * time.Minute
	x.line.w.wait(&turn{who: x.line.who, what: x.what + ": its connection", more: x.more, late: time.Now().Add(keepAlive), goes: func() string {
		return x.arrives(answered{nil, x.line.w.broken(faulty.ReplyLostAfter)})
	}})
	return "nobody hears of it"
}

// comesLate has a request hang somewhere, and arrive when its sender has forgotten it.
func (x *exchange) comesLate() string {
	d := time.Duration(5+x.line.w.mishaps.n(60)) * time.Second
	x.line.w.wait(&turn{who: x.line.who, what: x.what + ", late", more: x.more, late: time.Now().Add(d), goes: x.goes})
	return "delayed by " + d.String()
}

// blobStep names a request to the blobs.
func blobStep(req *http.Request) string {
	q := req.URL.Query()
	parts := []string{strings.ToLower(req.Method), "blob"}
	for _, key := range [...]string{"comp", "restype"} {
		if v := q.Get(key); v != "" {
			parts = append(parts, v)
		}
	}
	return strings.Join(parts, " ")
}
