package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
)

// ownerNotFound is the substatus of a 404 for a missing database or container. For a missing document, it is 0.
const ownerNotFound = 1003

// serveData serves a request for documents. It counts the request and adds the simulated latency.
func (s *Server) serveData(r *serverRequest) (Response, error) {
	s.requests.Add(1)
	answer, err := s.routeData(r)
	if s.delayer != nil && !r.endpoint.Unmetered {
		s.delayer.Delay(r.Context(), max(0, r.ContentLength)+int64(len(answer.Body)))
	}
	return answer, err
}

// admitRequest fails with 429 if the budget of the physical partition at is used up. If at is nil, it considers all
// partitions.
func (s *Server) admitRequest(r *serverRequest, c *engine.Container, at *engine.Range) error {
	if s.throttle == nil || r.endpoint.Unmetered {
		return nil
	}
	budgets := s.engine.Budgets(c, at)
	if wait := s.throttle.Admit(budgets); wait > 0 {
		return &engine.Error{
			Status: http.StatusTooManyRequests, SubStatus: 3200, RetryAfter: wait,
			Message: "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later.",
		}
	}
	r.budgets = budgets
	return nil
}

// admitWrite is admitRequest for a write. It fails with 449 if a conflict is simulated.
func (s *Server) admitWrite(r *serverRequest, c *engine.Container, at *engine.Range) error {
	if err := s.admitRequest(r, c, at); err != nil {
		return err
	}
	if s.collides != nil && s.collides() {
		return &engine.Error{Status: statusRetryWith, Message: "Conflicting request to resource has been attempted. Retry to avoid conflicts."}
	}
	return nil
}

func (s *Server) routeData(r *serverRequest) (Response, error) {
	c, err := s.engine.Container(r.segments[1], r.segments[3])
	if missing, ok := errors.AsType[*engine.Error](err); ok {
		missing.SubStatus = ownerNotFound
	}
	if err == nil {
		err = checkIntended(r, c)
	}
	if err != nil {
		return Response{}, err
	}
	feed := len(r.segments) == 5
	switch {
	case feed && r.Method == http.MethodPost && r.isSet("x-ms-cosmos-is-query-plan-request"):
		return s.servePlan(r, c)
	case feed && r.Method == http.MethodPost && r.isQuery():
		return s.serveQuery(r, c)
	case feed && r.Method == http.MethodPost && r.isSet("x-ms-cosmos-is-batch-request"):
		return s.serveBatch(r, c)
	case feed && r.Method == http.MethodPost:
		return s.createDocument(r, c)
	case feed && r.Method == http.MethodGet:
		return s.serveFeed(r, c)
	case feed:
		return Response{}, methodError(r)
	case r.Method == http.MethodGet:
		return s.readDocument(r, c)
	}
	op := engine.Op{ID: r.segments[5]}
	switch r.Method {
	case http.MethodPut:
		op.Kind = engine.Replace
	case http.MethodPatch:
		op.Kind = engine.Patch
	case http.MethodDelete:
		op.Kind = engine.Delete
	default:
		return Response{}, methodError(r)
	}
	return s.writeDocument(r, c, op)
}

func (s *Server) createDocument(r *serverRequest, c *engine.Container) (Response, error) {
	op := engine.Op{Kind: engine.Create}
	if r.isSet("x-ms-documentdb-is-upsert") {
		op.Kind = engine.Upsert
	}
	return s.writeDocument(r, c, op)
}

// writeDocument executes one write operation.
func (s *Server) writeDocument(r *serverRequest, c *engine.Container, op engine.Op) (Response, error) {
	if r.Header.Get("If-None-Match") != "" {
		return Response{}, unsupportedError("If-None-Match on a write")
	}
	pk, err := c.ParsePartition(r.Header.Get("x-ms-documentdb-partitionkey"))
	if err != nil {
		return Response{}, err
	}
	op.IfMatch = r.Header.Get("If-Match")
	if op.Kind != engine.Delete {
		body, err := r.readBody()
		if err != nil {
			return Response{}, err
		}
		if err := fillOp(r.Context(), c, pk, &op, body, r.allowsAnyID()); err != nil {
			return Response{}, err
		}
	}
	if err := s.admitWrite(r, c, c.RangeOf(pk)); err != nil {
		return Response{}, err
	}
	written, err := s.engine.Write(r.Context(), c, pk, []engine.Op{op}, engine.Consistency{})
	if err != nil {
		return Response{}, err
	}
	return s.operationResponse(r, written.Results[0], sessionToken(c.RangeOf(pk), written.Session), written.Session)
}

// fillOp parses the body of an operation and stores it in op.
func fillOp(ctx context.Context, c *engine.Container, pk engine.Partition, op *engine.Op, body []byte, anyID bool) (err error) {
	if op.Kind == engine.Patch {
		op.Patch, err = c.ParsePatch(ctx, body)
		return err
	}
	if op.Doc, err = c.ParseDocument(body, anyID); err != nil {
		return err
	}
	if op.Doc.Partition != pk {
		return &engine.Error{
			Status: http.StatusBadRequest, SubStatus: engine.KeyMismatch,
			Message: fmt.Sprintf("PartitionKey extracted from document doesn't match the one specified in the header: the header has %s, the document %s", pk, op.Doc.Partition),
		}
	}
	if op.Kind == engine.Replace && op.Doc.ID != op.ID {
		return badRequest("the document to replace has id %q, its body %q", op.ID, op.Doc.ID)
	}
	return nil
}

func (s *Server) readDocument(r *serverRequest, c *engine.Container) (Response, error) {
	if r.Header.Get("A-IM") != "" {
		return Response{}, badRequest("the change feed is that of a container, not of a document")
	}
	pk, err := c.ParsePartition(r.Header.Get("x-ms-documentdb-partitionkey"))
	if err != nil {
		return Response{}, err
	}
	consistency, err := s.parseConsistency(r)
	if err != nil {
		return Response{}, err
	}
	if err := s.admitRequest(r, c, c.RangeOf(pk)); err != nil {
		return Response{}, err
	}
	result, session, err := s.engine.Read(c, pk, r.segments[5], consistency)
	if err != nil {
		return Response{}, err
	}
	if known := r.Header.Get("If-None-Match"); known != "" && known == result.ETag {
		result.Status, result.JSON = http.StatusNotModified, nil
	}
	return s.operationResponse(r, result, sessionToken(c.RangeOf(pk), session), session)
}

// operationResponse returns the response for a single operation.
func (s *Server) operationResponse(r *serverRequest, result engine.Result, token string, session uint64) (Response, error) {
	s.recordCharge(r, result.Charge)
	r.answer.Set("x-ms-session-token", token)
	r.answer.Set("lsn", strconv.FormatUint(session, 10))
	if result.Status >= 400 {
		return Response{}, &engine.Error{Status: result.Status, Message: result.Message, Charge: result.Charge}
	}
	if result.ETag != "" {
		r.answer["Etag"] = []string{result.ETag}
	}
	if result.Status == http.StatusNoContent || r.wantsMinimal() {
		result.JSON = nil
	}
	return Response{Status: result.Status, Body: result.JSON}, nil
}

func (s *Server) recordCharge(r *serverRequest, charge engine.Charge) {
	if s.throttle != nil && !r.endpoint.Unmetered {
		s.throttle.Spend(r.budgets, int64(charge))
	}
	s.charged.Add(int64(charge))
	r.answer.Set("x-ms-request-charge", charge.String())
}

func (s *Server) serveQuery(r *serverRequest, c *engine.Container) (Response, error) {
	if kind := r.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/query+json") {
		return Response{}, badRequest("a query wants Content-Type application/query+json, found %q", kind)
	}
	q, text, err := s.parseQuery(r)
	if err != nil {
		return Response{}, err
	}
	same := string(text) // this text is the same for all pages of a query
	if order := q.SameOrder(); order != "" {
		same = order
	}
	return s.servePage(r, c, q, same, r.isSet("x-ms-documentdb-query-enablecrosspartition"))
}

// servePage returns one page of the results of q.
func (s *Server) servePage(r *serverRequest, c *engine.Container, q *query.Query, text string, cross bool) (Response, error) {
	req := engine.QueryRequest{Query: q, Text: c.RID + text, Continuation: r.Header.Get("x-ms-continuation"), AllowCross: cross}
	var err error
	if req.Consistency, err = s.parseConsistency(r); err != nil {
		return Response{}, err
	}
	if req.MaxItems, err = maxItems(r); err != nil {
		return Response{}, err
	}
	if req.Partition, req.Prefix, req.Range, err = parseScope(r, c); err != nil {
		return Response{}, err
	}
	req.Scoped = req.Partition != ""
	if err := c.Scope(&req); err != nil {
		return Response{}, err
	}
	at := req.Range
	if req.Scoped && at == nil {
		at = c.RangeOf(req.Partition)
	}
	if err := s.admitRequest(r, c, at); err != nil {
		return Response{}, err
	}
	page, err := s.engine.Query(r.Context(), c, req)
	if err != nil {
		if page.Continuation != "" {
			r.answer.Set("x-ms-continuation", page.Continuation)
		}
		addAdvice(r, c, req, err)
		return Response{}, err
	}
	s.recordCharge(r, page.Charge)
	r.answer.Set("x-ms-session-token", sessionTokens(c, at, page.Session))
	r.answer.Set("x-ms-item-count", strconv.Itoa(page.Count))
	if page.Continuation != "" {
		r.answer.Set("x-ms-continuation", page.Continuation)
	}
	if r.isSet("x-ms-documentdb-populatequerymetrics") {
		r.answer.Set("x-ms-documentdb-query-metrics", queryMetrics(page))
	}
	if r.isSet("x-ms-cosmos-populateindexmetrics") {
		r.answer.Set("x-ms-cosmos-index-utilization", "e30=") // base64 of {}, which means no advice
	}
	return Response{Status: http.StatusOK, Body: page.JSON}, nil
}

// maxItems returns the maximum number of results on a page, or -1 if the client sets none.
func maxItems(r *serverRequest) (int, error) {
	text := r.Header.Get("x-ms-max-item-count")
	if text == "" {
		return 100, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n == 0 || n < -1 {
		return 0, badRequest("x-ms-max-item-count %q: want a number from 1 on, or -1", text)
	}
	return n, nil
}

// queryMetrics formats the query metrics header. All times are 0, because the engine does not measure them.
func queryMetrics(p engine.Page) string {
	const times = "totalExecutionTimeInMs=0.00;queryCompileTimeInMs=0.00;queryLogicalPlanBuildTimeInMs=0.00;queryPhysicalPlanBuildTimeInMs=0.00;" +
		"queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs=0.00;indexLookupTimeInMs=0.00;documentLoadTimeInMs=0.00;" +
		"systemFunctionExecuteTimeInMs=0.00;userFunctionExecuteTimeInMs=0.00;"
	return fmt.Sprintf("%sretrievedDocumentCount=%d;retrievedDocumentSize=%d;outputDocumentCount=%d;outputDocumentSize=%d;writeOutputTimeInMs=0.00;indexUtilizationRatio=1.00",
		times, p.Loaded, len(p.JSON), p.Count, len(p.JSON))
}
