package wire

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
)

// serveBulk executes independent operations in one physical partition. Each names its logical partition. Clients use
// bulk requests to save round trips. The status is 200 if all operations succeeded, otherwise 207.
func (s *Server) serveBulk(r *serverRequest, c *engine.Container) (Response, error) {
	_, _, at, err := parseScope(r, c)
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
	parts, err := splitBatch(body)
	if err != nil {
		return Response{}, err
	}
	if err := s.admitWrite(r, c, at); err != nil {
		return Response{}, err
	}
	results := make([]engine.Result, len(parts))
	var ops []engine.PlacedOp
	var places []int // index of each op in the results
	for i, part := range parts {
		op, err := parsePlaced(r.Context(), c, at, part, r.allowsAnyID())
		var wrong *engine.Error
		switch {
		case errors.As(err, &wrong):
			results[i] = engine.Result{Status: wrong.Status, Message: wrong.Message}
		case err != nil:
			return Response{}, err
		default:
			ops, places = append(ops, op), append(places, i)
		}
	}
	written, err := s.engine.WriteEach(r.Context(), c, ops, consistency)
	if err != nil {
		return Response{}, err
	}
	for i, result := range written.Results {
		results[places[i]] = result
	}
	written.Results = results
	s.recordCharge(r, written.Charge)
	r.answer.Set("x-ms-session-token", sessionTokens(c, at, written.Session))
	r.answer.Set("x-ms-item-count", strconv.Itoa(len(results)))
	status := http.StatusOK
	for _, result := range results {
		if result.Status >= 300 {
			status = http.StatusMultiStatus
		}
	}
	return Response{Status: status, Body: resultsJSON(written, r.wantsMinimal())}, nil
}

// parsePlaced parses an operation that names its partition. It fails if the partition is outside the range at, which
// can happen after the range was split.
func parsePlaced(ctx context.Context, c *engine.Container, at *engine.Range, part []byte, anyID bool) (engine.PlacedOp, error) {
	var op engine.PlacedOp
	var key string
	if err := parseOperation(ctx, c, "", part, &op.Op, anyID, &key); err != nil {
		return op, err
	}
	var err error
	if op.Partition, err = c.ParsePartition(key); err != nil {
		return op, err
	}
	if at != nil && c.RangeOf(op.Partition).ID != at.ID {
		return op, &engine.Error{Status: http.StatusGone, SubStatus: 1002, Message: "partition key " + key + " is not in range " + at.ID}
	}
	return op, nil
}
