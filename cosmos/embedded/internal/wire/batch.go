package wire

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// maxOperations is the maximum number of operations in a batch.
const maxOperations = 100

var kinds = map[string]engine.Kind{
	"Create": engine.Create, "Upsert": engine.Upsert, "Replace": engine.Replace,
	"Patch": engine.Patch, "Delete": engine.Delete, "Read": engine.Read,
}

// serveBatch executes a transactional batch. The status is 200 if the batch was committed, otherwise 207.
func (s *Server) serveBatch(r *serverRequest, c *engine.Container) (Response, error) {
	if !r.isSet("x-ms-cosmos-batch-atomic") {
		return s.serveBulk(r, c)
	}
	if r.Header.Get("x-ms-cosmos-batch-ordered") != "" && !r.isSet("x-ms-cosmos-batch-ordered") { // the header is optional, because some clients omit it
		return Response{}, unsupportedError("an atomic batch that is not ordered")
	}
	pk, err := c.ParsePartition(r.Header.Get("x-ms-documentdb-partitionkey"))
	if err != nil {
		return Response{}, err
	}
	consistency, err := s.parseConsistency(r)
	if err != nil {
		return Response{}, err
	}
	body, err := r.readBody()
	if err != nil {
		return Response{}, err
	}
	ops, at, err := parseBatch(r.Context(), c, pk, body, r.allowsAnyID())
	var wrong *engine.Error
	if err != nil && (at < 0 || !errors.As(err, &wrong)) {
		return Response{}, err
	}
	if err := s.admitWrite(r, c, c.RangeOf(pk)); err != nil {
		return Response{}, err
	}
	var written engine.WriteResult
	if wrong != nil {
		written = rejectBatch(len(ops), at, wrong)
	} else if written, err = s.engine.Write(r.Context(), c, pk, ops, consistency); err != nil {
		return Response{}, err
	}
	s.recordCharge(r, written.Charge)
	r.answer.Set("x-ms-session-token", sessionToken(c.RangeOf(pk), written.Session))
	status := http.StatusOK
	if written.Failed >= 0 {
		status = http.StatusMultiStatus
		r.answer.Set("x-ms-substatus", "0")
	}
	return Response{Status: status, Body: resultsJSON(written, r.wantsMinimal())}, nil
}

// parseBatch parses the operations of a batch. at is the index of an invalid operation, or -1 if the batch itself is
// invalid.
func parseBatch(ctx context.Context, c *engine.Container, pk engine.Partition, body []byte, anyID bool) (ops []engine.Op, at int, err error) {
	parts, err := splitBatch(body)
	if err != nil {
		return nil, -1, err
	}
	ops = make([]engine.Op, len(parts))
	for i, part := range parts {
		if err := parseOperation(ctx, c, pk, part, &ops[i], anyID, nil); err != nil {
			return ops, i, err
		}
	}
	return ops, -1, nil
}

func splitBatch(body []byte) (parts [][]byte, err error) {
	if err := rawjson.EachElement(body, func(part []byte) bool {
		parts = append(parts, part)
		return true
	}); err != nil {
		return nil, badRequest("batch: %v", err)
	}
	if len(parts) == 0 {
		return nil, badRequest("the batch has no operations")
	}
	if len(parts) > maxOperations {
		return nil, badRequest("Batch request has more operations than what is supported: %d of at most %d.", len(parts), maxOperations)
	}
	return parts, nil
}

// parseOperation parses one operation. In a bulk request it also has a partition key, which is stored in bulk; for a
// transactional batch, bulk is nil.
func parseOperation(ctx context.Context, c *engine.Container, pk engine.Partition, part []byte, op *engine.Op, anyID bool, bulk *string) error {
	var body []byte
	var kind string
	var wrong error
	err := rawjson.EachMember(part, func(name, value []byte) bool {
		var into *string
		switch string(name) {
		case `"resourceBody"`:
			body = value
			return true
		case `"operationType"`:
			into = &kind
		case `"id"`:
			into = &op.ID
		case `"ifMatch"`:
			into = &op.IfMatch
		case `"partitionKey"`:
			into = bulk
		}
		if into == nil {
			wrong = unsupportedError("batch operation with %s", name)
		} else if json.Unmarshal(value, into) != nil {
			wrong = badRequest("batch: %s is not a string", name)
		}
		return wrong == nil
	})
	if err != nil {
		return badRequest("batch: %v", err)
	}
	if wrong != nil {
		return wrong
	}
	known := false
	if op.Kind, known = kinds[kind]; !known {
		return unsupportedError("batch operation %q", kind)
	}
	if bulk != nil {
		if pk, wrong = c.ParsePartition(*bulk); wrong != nil {
			return wrong
		}
	}
	if op.Kind == engine.Delete || op.Kind == engine.Read {
		return nil
	}
	return fillOp(ctx, c, pk, op, body, anyID)
}

// rejectBatch returns the result of a batch of n operations of which operation at is invalid. The engine executes
// nothing.
func rejectBatch(n, at int, wrong *engine.Error) engine.WriteResult {
	w := engine.WriteResult{Results: make([]engine.Result, n), Failed: at}
	for i := range w.Results {
		w.Results[i].Status = http.StatusFailedDependency
	}
	w.Results[at] = engine.Result{Status: wrong.Status, Message: wrong.Message}
	return w
}

func resultsJSON(w engine.WriteResult, minimal bool) []byte {
	size := 2
	for _, r := range w.Results {
		size += 160
		if !minimal {
			size += len(r.JSON)
		}
	}
	body := append(make([]byte, 0, size), '[')
	for i, r := range w.Results {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"statusCode":`...)
		body = strconv.AppendInt(body, int64(r.Status), 10)
		body = append(body, `,"requestCharge":`...)
		body = append(body, r.Charge.String()...)
		if r.ETag != "" {
			body = append(body, `,"eTag":`...)
			body = rawjson.AppendQuoted(body, r.ETag)
		}
		if r.Message != "" {
			body = append(body, `,"message":`...)
			body = rawjson.AppendQuoted(body, r.Message)
		}
		if r.JSON != nil && !minimal && r.Status < 300 {
			body = append(body, `,"resourceBody":`...)
			body = append(body, r.JSON...)
		}
		body = append(body, '}')
	}
	return append(body, ']')
}
